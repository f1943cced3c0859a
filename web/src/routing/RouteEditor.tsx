import { Checkbox, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";
import type { EscalationStep, RoutingRoute, Webhook } from "../api/client";
import { blankMatch, type MatchValues, matchOf, valuesOfMatch, wrongLines } from "../silences/form";
import { MatchFields } from "../silences/MatchFields";
import { Button } from "../ui/Button";
import { Form, FormSection } from "../ui/Form";
import { useFocusAtFirst } from "../ui/useFocusAtFirst";
import { wrongSteps } from "./policy";
import styles from "./routing.module.css";
import { Steps } from "./Steps";

interface Values extends MatchValues {
  name: string;
  webhookIds: string[];
  goesOn: boolean;
  escalation: EscalationStep[];
}

interface Props {
  /** The route; none for a new one. */
  route?: Required<RoutingRoute>;
  /** The names of the other routes. */
  taken: readonly string[];
  webhooks: readonly Webhook[];
  teams: readonly string[];
  onDone: (route: Required<RoutingRoute>) => void;
  onCancel: () => void;
}

/** The form of a route. Its content is saved with the whole policy. */
export function RouteEditor({ route, taken, webhooks, teams, onDone, onCancel }: Props) {
  const form = useForm<Values>({
    initialValues: route
      ? {
          ...valuesOfMatch(route.match),
          name: route.name,
          webhookIds: route.webhookIds,
          escalation: route.escalation,
          goesOn: route.continue,
        }
      : { ...blankMatch(), name: "", webhookIds: [], escalation: [], goesOn: false },
  });
  const [refusals, setRefusals] = useState(0);
  const begin = useFocusAtFirst<HTMLInputElement>();
  const submit = () => {
    const { name, webhookIds, escalation, goesOn, ...match } = form.values;
    const wrong: Record<string, string> = wrongLines(match);
    const wrongStep = wrongSteps(escalation);
    if (wrongStep) wrong.escalation = wrongStep;
    if (name.trim() === "") wrong.name = "Must not be empty";
    else if (taken.includes(name.trim())) wrong.name = "Another route has the same name; choose another one";
    if (Object.keys(wrong).length > 0) {
      form.setErrors(wrong);
      setRefusals(refusals + 1);
    } else onDone({ name: name.trim(), match: matchOf(match), webhookIds, escalation, continue: goesOn });
  };
  return (
    <section className={styles.card} aria-label={route ? `Edit ${route.name}` : "Add route"}>
      <Form problems={[]} refusals={refusals} onSubmit={submit}>
        <FormSection title={route ? "Route" : "New route"}>
          <TextInput ref={begin} label="Name" placeholder="Orders team" {...form.getInputProps("name")} />
        </FormSection>
        <FormSection
          title="Which alerts"
          hint="All conditions must be met; a blank field matches everything. Without conditions, all alerts take the route."
        >
          <MatchFields form={form} ofRoute />
        </FormSection>
        <FormSection title="Who is notified">
          <Hooks webhooks={webhooks} {...form.getInputProps("webhookIds")} />
          <Checkbox
            size="xs"
            label="Continue with the next routes"
            {...form.getInputProps("goesOn", { type: "checkbox" })}
          />
        </FormSection>
        <EscalationSection form={form} webhooks={webhooks} teams={teams} />
        <div className={styles.actions}>
          <Button type="submit" look="primary">
            {route ? "Apply changes" : "Add route"}
          </Button>
          <Button onClick={onCancel}>Cancel</Button>
        </div>
      </Form>
    </section>
  );
}

interface EscalationProps {
  form: {
    values: { escalation: EscalationStep[] };
    // biome-ignore lint/suspicious/noExplicitAny: as the form says
    getInputProps: (field: "escalation") => any;
  };
  webhooks: readonly Webhook[];
  teams: readonly string[];
}

function EscalationSection({ form, webhooks, teams }: EscalationProps) {
  return (
    <FormSection
      title="Escalation"
      hint="Who else is notified if nobody acknowledges the alert. Times are measured from when the alert fired. A step is skipped if the alert has been acknowledged, resolved or snoozed by then."
    >
      <Steps steps={form.values.escalation} webhooks={webhooks} teams={teams} {...form.getInputProps("escalation")} />
    </FormSection>
  );
}

interface DefaultProps {
  webhookIds: readonly string[];
  escalation: readonly EscalationStep[];
  webhooks: readonly Webhook[];
  teams: readonly string[];
  onDone: (webhookIds: string[], escalation: EscalationStep[]) => void;
  onCancel: () => void;
}

/** The form of the default. */
export function DefaultEditor({ webhookIds, escalation, webhooks, teams, onDone, onCancel }: DefaultProps) {
  const form = useForm({ initialValues: { webhookIds: [...webhookIds], escalation: [...escalation] } });
  const [refusals, setRefusals] = useState(0);
  const begin = useFocusAtFirst<HTMLElement>();
  const submit = () => {
    const wrong = wrongSteps(form.values.escalation);
    if (wrong) {
      form.setErrors({ escalation: wrong });
      setRefusals(refusals + 1);
    } else onDone(form.values.webhookIds, form.values.escalation);
  };
  return (
    <section ref={begin} tabIndex={-1} className={styles.card} aria-label="Edit default">
      <Form problems={[]} refusals={refusals} onSubmit={submit}>
        <FormSection
          title="Default"
          hint="Who is notified of alerts that take no route. Without webhooks, nobody is notified."
        >
          <Hooks webhooks={webhooks} {...form.getInputProps("webhookIds")} />
        </FormSection>
        <EscalationSection form={form} webhooks={webhooks} teams={teams} />
        <div className={styles.actions}>
          <Button type="submit" look="primary">
            Apply changes
          </Button>
          <Button onClick={onCancel}>Cancel</Button>
        </div>
      </Form>
    </section>
  );
}

function Hooks({ webhooks, ...input }: { webhooks: readonly Webhook[]; onChange: (ids: string[]) => void }) {
  return (
    <Checkbox.Group label="Webhooks" description="Without webhooks, nobody is notified." {...input}>
      <div className={styles.hooks}>
        {webhooks.map(({ id, name, enabled }) => (
          <Checkbox key={id} size="xs" value={id} label={`${name}${enabled ? "" : " (disabled)"}`} />
        ))}
      </div>
    </Checkbox.Group>
  );
}
