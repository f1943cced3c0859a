import { useForm } from "@mantine/form";
import { useMemo, useState } from "react";
import type { Me } from "../api/access";
import type { Webhook } from "../api/client";
import { type DraftOf, draftsOf } from "../drafts/draft";
import { useDraft, useKeeping } from "../drafts/useDraft";
import { blank, type KeptWebhook, same, type Values, valuesOf, webhookKind, withoutSecrets } from "./form";

/**
 * The form of a webhook, stored or new. What a person types is stored as a draft until it is saved
 * or discarded, except for secrets: those are only sent to the server.
 */
export function useWebhookForm(webhook: Webhook | undefined, who: Me, taking: KeptWebhook | undefined) {
  const id = webhook?.id;
  const person = draftsOf(who);
  const of = useMemo<DraftOf<Values>>(() => ({ person, kind: webhookKind, id }), [person, id]);
  const drafts = useDraft<Values, Webhook>(of, taking);
  const { taken, others, giveUp } = drafts;
  /** The version that the edit is based on: the one that was read, or one that this page has made since. */
  const [base, setBase] = useState(taken?.base ?? webhook);
  const form = useForm<Values>({ initialValues: taken?.values ?? (webhook ? valuesOf(webhook) : blank) });
  const before = base ? valuesOf(base) : blank;
  const keepable = useMemo(() => withoutSecrets(form.values), [form.values]);
  const secret = !same(keepable, form.values);
  const dirty = !same(form.values, before);
  const { restored, kept, forget } = useKeeping(drafts, { values: keepable, base, dirty: !same(keepable, before) });
  return {
    form,
    base,
    setBase,
    /** Bases the edit on a version that was made here, unless somebody else has made one in between. */
    follow: (made: Webhook) => setBase((before) => (made.version === (before?.version ?? 0) + 1 ? made : before)),
    dirty,
    /** Whether something was typed that this browser does not store. */
    losable: dirty && (secret || !kept),
    restored,
    others,
    giveUp,
    forget,
    restart: (stored: Webhook | undefined) => {
      forget();
      setBase(stored);
      form.setValues(stored ? valuesOf(stored) : blank);
      form.clearErrors();
    },
  };
}
