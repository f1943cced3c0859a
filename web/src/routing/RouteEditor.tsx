import { Checkbox, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";
import type { RoutingRoute, Webhook } from "../api/client";
import { blankMatch, type MatchValues, matchOf, valuesOfMatch, wrongLines } from "../silences/form";
import { MatchFields } from "../silences/MatchFields";
import { Button } from "../ui/Button";
import { Form, FormSection } from "../ui/Form";
import styles from "./routing.module.css";

interface Values extends MatchValues {
  name: string;
  webhookIds: string[];
  goesOn: boolean;
}

interface Props {
  /** The route; a new one has none. */
  route?: Required<RoutingRoute>;
  /** The names of the others. */
  taken: readonly string[];
  webhooks: readonly Webhook[];
  onDone: (route: Required<RoutingRoute>) => void;
  onCancel: () => void;
}

/** The form of a route. What it says is saved with the whole policy. */
export function RouteEditor({ route, taken, webhooks, onDone, onCancel }: Props) {
  const form = useForm<Values>({
    initialValues: route
      ? { ...valuesOfMatch(route.match), name: route.name, webhookIds: route.webhookIds, goesOn: route.continue }
      : { ...blankMatch(), name: "", webhookIds: [], goesOn: false },
  });
  const [refusals, setRefusals] = useState(0);
  const submit = () => {
    const { name, webhookIds, goesOn, ...match } = form.values;
    const wrong = wrongLines(match);
    if (name.trim() === "") wrong.name = "Must not be empty";
    else if (taken.includes(name.trim())) wrong.name = "Another route has this name, too";
    if (Object.keys(wrong).length > 0) {
      form.setErrors(wrong);
      setRefusals(refusals + 1);
    } else onDone({ name: name.trim(), match: matchOf(match), webhookIds, continue: goesOn });
  };
  return (
    <section className={styles.card} aria-label={route ? `Edit ${route.name}` : "New route"}>
      <Form problems={[]} refusals={refusals} onSubmit={submit}>
        <FormSection title={route ? "Route" : "New route"}>
          <TextInput label="Name" placeholder="Orders team" {...form.getInputProps("name")} />
        </FormSection>
        <FormSection
          title="Which alerts"
          hint="All conditions must hold; a blank one matches everything. Without any, all alerts take the route."
        >
          <MatchFields form={form} ofRoute />
        </FormSection>
        <FormSection title="Who is notified">
          <Hooks webhooks={webhooks} {...form.getInputProps("webhookIds")} />
          <Checkbox
            size="xs"
            label="Continue: look at the next routes, too"
            {...form.getInputProps("goesOn", { type: "checkbox" })}
          />
        </FormSection>
        <div className={styles.actions}>
          <Button type="submit" look="primary">
            {route ? "Keep the changes" : "Add the route"}
          </Button>
          <Button onClick={onCancel}>Cancel</Button>
        </div>
      </Form>
    </section>
  );
}

interface DefaultProps {
  webhookIds: readonly string[];
  webhooks: readonly Webhook[];
  onDone: (webhookIds: string[]) => void;
  onCancel: () => void;
}

/** The form of the default. */
export function DefaultEditor({ webhookIds, webhooks, onDone, onCancel }: DefaultProps) {
  const form = useForm({ initialValues: { webhookIds: [...webhookIds] } });
  return (
    <section className={styles.card} aria-label="Edit the default">
      <Form problems={[]} refusals={0} onSubmit={() => onDone(form.values.webhookIds)}>
        <FormSection title="Default" hint="Who is notified of alerts that take no route. Without any, nobody is.">
          <Hooks webhooks={webhooks} {...form.getInputProps("webhookIds")} />
        </FormSection>
        <div className={styles.actions}>
          <Button type="submit" look="primary">
            Keep the changes
          </Button>
          <Button onClick={onCancel}>Cancel</Button>
        </div>
      </Form>
    </section>
  );
}

function Hooks({ webhooks, ...input }: { webhooks: readonly Webhook[]; onChange: (ids: string[]) => void }) {
  return (
    <Checkbox.Group label="Webhooks" description="Without any, nobody is notified by this." {...input}>
      <div className={styles.hooks}>
        {webhooks.map(({ id, name, enabled }) => (
          <Checkbox key={id} size="xs" value={id} label={`${name}${enabled ? "" : " (disabled)"}`} />
        ))}
      </div>
    </Checkbox.Group>
  );
}
