import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { type Me, me } from "../api/access";
import type { Webhook } from "../api/client";
import { ApiError } from "../api/errors";
import { placeErrors } from "../api/fields";
import { mayCall } from "../api/operations";
import { routingPolicy } from "../api/routing";
import { ruleList } from "../api/rules";
import { oneWebhookHealth, readWebhook, updateWebhook, webhookKeys } from "../api/webhooks";

import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { ConflictDialog } from "../ui/ConflictDialog";
import { Form } from "../ui/Form";
import formStyles from "../ui/form.module.css";
import { useLastError } from "../ui/lastError";
import { Failed, Forbidden, SkeletonForm } from "../ui/states";
import { useToast } from "../ui/toast";
import { useHere } from "../ui/useHere";
import { useServerForm } from "../ui/useServerForm";
import { counted } from "../ui/words";
import { Flow } from "./Flow";
import { differences, editOf, fieldsOf, type KeptWebhook, merged, valuesOf } from "./form";
import { Unsaved } from "./Unsaved";
import { useWebhookForm } from "./useWebhookForm";
import { WebhookFields } from "./WebhookFields";
import { WebhookPanel } from "./WebhookPanel";
import styles from "./webhooks.module.css";

export function EditWebhookPage() {
  const { webhookId = "" } = useParams({ strict: false });
  // Drafts belong to one person.
  const who = useQuery(me());
  const webhook = useQuery(oneWebhookHealth(webhookId));
  const failure = useLastError(who.data ? webhook : who, webhookId);
  const [taken, setTaken] = useState<KeptWebhook>();
  useEffect(() => {
    document.title = "Webhook · Tocsin";
  }, []);
  return (
    <Page title={webhook.data?.name ?? "Webhook"} scrolls>
      {who.data && !mayCall(who.data, "updateWebhook") ? (
        <Forbidden role={who.data.role} least="editors" />
      ) : who.data && webhook.data ? (
        <Edit key={`${webhookId} ${taken?.id}`} webhook={webhook.data} who={who.data} taken={taken} onTake={setTaken} />
      ) : failure ? (
        <Failed error={failure} onRetry={() => Promise.all([who.refetch(), webhook.refetch()])}>
          <p>
            <Link to="/webhooks">Go to the webhooks</Link>
          </p>
        </Failed>
      ) : (
        <SkeletonForm label="Loading the webhook" />
      )}
    </Page>
  );
}

interface EditProps {
  webhook: Webhook;
  who: Me;
  /** The draft that the person has chosen among several. */
  taken: KeptWebhook | undefined;
  onTake: (kept: KeptWebhook) => void;
}

function Edit({ webhook, who, taken, onTake }: EditProps) {
  const navigate = useNavigate();
  const cache = useQueryClient();
  const toast = useToast();
  const [theirs, setTheirs] = useState<Webhook>();
  const leaving = useRef(false);
  const here = useHere();
  const edit = useWebhookForm(webhook, who, taken);
  const { form, base = webhook, setBase } = edit;
  const save = useServerForm({
    form,
    fields: fieldsOf(form.values),
    send: (on: Webhook) => updateWebhook(on, editOf(form.values, on)),
    onSaved: async (saved) => {
      const warnings = (saved.warnings ?? []).map((warning) => warning.message).join(" ");
      toast(`“${saved.name}” was saved. ${warnings}`.trim(), "done");
      leaving.current = true;
      edit.forget();
      await cache.invalidateQueries({ queryKey: webhookKeys.all });
      if (here()) await navigate({ to: "/webhooks" });
    },
    onRefused: async (error) => {
      if (!(error instanceof ApiError && error.status === 412)) return false;
      try {
        setTheirs(await readWebhook(webhook.id));
      } catch (cause) {
        save.refuse(placeErrors(cause, fieldsOf(form.values)));
      }
      return true;
    },
  });
  return (
    <div className={styles.halves}>
      <div>
        <WebhookPanel webhook={webhook} onChanged={edit.follow} />
        <section className={styles.activity} aria-label="Activity">
          <Flow webhookId={webhook.id} />
          <UsedBy webhookId={webhook.id} />
        </section>
      </div>
      <Form problems={save.problems} refusals={save.refusals} onSubmit={() => save.submit(base)}>
        <Unsaved edit={edit} webhook={webhook} who={who} onTake={onTake} isDone={() => leaving.current} />
        <fieldset disabled={save.busy} inert={save.busy} className={formStyles.sections}>
          <WebhookFields form={form} webhook={base} />
        </fieldset>
        <div className={formStyles.actions}>
          <Button type="submit" look="primary" busy={save.busy}>
            Save webhook
          </Button>
          <Link to="/webhooks" className={buttonClass()}>
            Cancel
          </Link>
        </div>
      </Form>
      {theirs && (
        <ConflictDialog
          what="webhook"
          found={differences(valuesOf(base), { theirs: valuesOf(theirs), mine: form.values })}
          note="Secrets cannot be compared: what you typed is saved."
          onTake={(mine) => {
            form.setValues(merged({ theirs: valuesOf(theirs), mine: form.values }, mine));
            setBase(theirs);
            setTheirs(undefined);
            save.clearProblems();
          }}
          onClose={() => setTheirs(undefined)}
        />
      )}
    </div>
  );
}

/** The rules that send to a webhook. */
function UsedBy({ webhookId }: { webhookId: string }) {
  const { data: rules } = useQuery(ruleList());
  const { data: policy } = useQuery(routingPolicy());
  if (!rules) return null;
  const used = rules.filter((rule) => rule.webhookIds.includes(webhookId));
  const routes = (policy?.routes ?? [])
    .filter((route) => route.webhookIds?.includes(webhookId))
    .map(({ name }) => name);
  if (policy?.defaultWebhookIds.includes(webhookId)) routes.push("the default");
  const routed = routes.length > 0 && (
    <p className={styles.signing}>
      Routes of the <Link to="/routing">routing policy</Link> that send here: {routes.join(", ")}.
    </p>
  );
  if (used.length === 0) return routed || <p className={styles.signing}>No rule uses this webhook.</p>;
  return (
    <div>
      {routed}
      <h2 className={styles.usedBy}>Used by {counted(used.length, "rule")}</h2>
      <ul className={styles.used}>
        {used.map(({ id, name, enabled }) => (
          <li key={id}>
            <Link to="/rules/$ruleId" params={{ ruleId: id }}>
              {name}
            </Link>
            {!enabled && " (disabled)"}
          </li>
        ))}
      </ul>
    </div>
  );
}
