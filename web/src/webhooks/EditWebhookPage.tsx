import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { type Me, me } from "../api/access";
import type { Webhook } from "../api/client";
import { ApiError } from "../api/errors";
import { mayCall } from "../api/operations";
import { oneWebhook, readWebhook, updateWebhook, webhookKeys } from "../api/webhooks";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { Form } from "../ui/Form";
import formStyles from "../ui/form.module.css";
import { useStanding } from "../ui/standing";
import { Failed, Forbidden, SkeletonForm } from "../ui/states";
import { useToast } from "../ui/toast";
import { useServerForm } from "../ui/useServerForm";
import { differences, editOf, fields, type KeptWebhook, type Values } from "./form";
import { Unsaved } from "./Unsaved";
import { useWebhookForm } from "./useWebhookForm";
import { WebhookFields } from "./WebhookFields";
import { WebhookPanel } from "./WebhookPanel";
import styles from "./webhooks.module.css";

export function EditWebhookPage() {
  const { webhookId = "" } = useParams({ strict: false });
  // Drafts belong to a person.
  const who = useQuery(me());
  const webhook = useQuery(oneWebhook(webhookId));
  const failure = useStanding(who.data ? webhook : who, webhookId);
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
  const edit = useWebhookForm(webhook, who, taken);
  const { form, base = webhook, setBase } = edit;
  const save = useServerForm({
    form,
    fields,
    send: (on: Webhook) => updateWebhook(on, editOf(form.values, on)),
    onSaved: async (saved) => {
      const warnings = (saved.warnings ?? []).map((warning) => warning.message).join(" ");
      toast(`“${saved.name}” was saved. ${warnings}`.trim(), "done");
      leaving.current = true;
      edit.forget();
      await cache.invalidateQueries({ queryKey: webhookKeys.all });
      await navigate({ to: "/webhooks" });
    },
    onRefused: async (error) => {
      if (!(error instanceof ApiError && error.status === 412)) return false;
      setTheirs(await readWebhook(webhook.id).catch(() => undefined));
      save.refuse({ fields: {}, rest: ["Somebody else has changed this webhook. Your changes are still here."] });
      return true;
    },
  });
  return (
    <>
      <WebhookPanel webhook={webhook} onChanged={edit.follow} />
      <Form problems={save.problems} refusals={save.refusals} onSubmit={() => save.submit(base)}>
        <Unsaved edit={edit} webhook={webhook} who={who} onTake={onTake} isDone={() => leaving.current} />
        {theirs && (
          <Conflict
            mine={form.values}
            theirs={theirs}
            onMine={() => {
              setBase(theirs);
              setTheirs(undefined);
              save.submit(theirs);
            }}
            onTheirs={() => {
              edit.restart(theirs);
              setTheirs(undefined);
              save.clearProblems();
            }}
          />
        )}
        <WebhookFields form={form} webhook={base} />
        <div className={formStyles.actions}>
          <Button type="submit" look="primary" disabled={save.busy || theirs !== undefined}>
            Save the webhook
          </Button>
          <Link to="/webhooks" className={buttonClass()}>
            Cancel
          </Link>
        </div>
      </Form>
    </>
  );
}

interface ConflictProps {
  mine: Values;
  theirs: Webhook;
  onMine: () => void;
  onTheirs: () => void;
}

/** Both versions side by side, and the choice between them. */
function Conflict({ mine, theirs, onMine, onTheirs }: ConflictProps) {
  const differing = differences(mine, theirs);
  return (
    <section className={styles.conflict} aria-label="Both versions">
      {differing.length > 0 ? (
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Yours</th>
              <th scope="col">Theirs</th>
            </tr>
          </thead>
          <tbody>
            {differing.map(({ name, mine, theirs }) => (
              <tr key={name}>
                <td>{name}</td>
                <td>{mine || "empty"}</td>
                <td>{theirs || "empty"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p>Everything that can be compared is the same. Secrets cannot be compared.</p>
      )}
      <div className={styles.actions}>
        <Button look="primary" onClick={onMine}>
          Overwrite with mine
        </Button>
        <Button onClick={onTheirs}>Use theirs</Button>
      </div>
    </section>
  );
}
