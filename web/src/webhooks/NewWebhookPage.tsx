import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { type Me, me } from "../api/access";
import { mayCall } from "../api/operations";
import { createWebhook, webhookKeys } from "../api/webhooks";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { Form } from "../ui/Form";
import styles from "../ui/form.module.css";
import { useLastError } from "../ui/lastError";
import { Failed, Forbidden, SkeletonForm } from "../ui/states";
import { useToast } from "../ui/toast";
import { useHere } from "../ui/useHere";
import { useServerForm } from "../ui/useServerForm";
import { definition, fieldsOf, type KeptWebhook } from "./form";
import { Unsaved } from "./Unsaved";
import { useWebhookForm } from "./useWebhookForm";
import { WebhookFields } from "./WebhookFields";

export function NewWebhookPage() {
  // Drafts belong to one person.
  const who = useQuery(me());
  const failure = useLastError(who);
  const [taken, setTaken] = useState<KeptWebhook>();
  useEffect(() => {
    document.title = "New webhook · Tocsin";
  }, []);
  return (
    <Page title="New webhook" scrolls>
      {who.data === undefined ? (
        failure ? (
          <Failed error={failure} onRetry={who.refetch} />
        ) : (
          <SkeletonForm label="Loading" />
        )
      ) : mayCall(who.data, "createWebhook") ? (
        <NewWebhook key={taken?.id} who={who.data} taken={taken} onTake={setTaken} />
      ) : (
        <Forbidden role={who.data.role} least="editors" />
      )}
    </Page>
  );
}

interface Props {
  who: Me;
  /** The draft that the person has chosen among several. */
  taken: KeptWebhook | undefined;
  onTake: (kept: KeptWebhook) => void;
}

function NewWebhook({ who, taken, onTake }: Props) {
  const leaving = useRef(false);
  const here = useHere();
  const navigate = useNavigate();
  const cache = useQueryClient();
  const toast = useToast();
  const edit = useWebhookForm(undefined, who, taken);
  const { form } = edit;
  const create = useServerForm({
    form,
    fields: fieldsOf(form.values),
    send: createWebhook,
    onSaved: async (webhook) => {
      const warnings = (webhook.warnings ?? []).map((warning) => warning.message).join(" ");
      leaving.current = true;
      edit.forget();
      toast(`“${webhook.name}” was created. ${warnings}`.trim(), "done");
      await cache.invalidateQueries({ queryKey: webhookKeys.all });
      if (here()) await navigate({ to: "/webhooks" });
    },
  });
  const submit = () => create.submit(definition(form.values));
  return (
    <Form problems={create.problems} refusals={create.refusals} onSubmit={submit}>
      <Unsaved edit={edit} webhook={undefined} who={who} onTake={onTake} isDone={() => leaving.current} />
      <fieldset disabled={create.busy} inert={create.busy} className={styles.sections}>
        <WebhookFields form={form} />
      </fieldset>
      <div className={styles.actions}>
        <Button type="submit" look="primary" busy={create.busy}>
          Create webhook
        </Button>
        <Link to="/webhooks" className={buttonClass()}>
          Cancel
        </Link>
      </div>
    </Form>
  );
}
