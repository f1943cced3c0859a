import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Webhook } from "../api/client";
import { reasonOf } from "../api/errors";
import { readWebhook, rotateSecret, webhookKeys } from "../api/webhooks";
import { CopyButton } from "../ui/CopyButton";
import { FormDialog, Secret } from "../ui/FormDialog";
import { ExactTime } from "../ui/Instant";
import { Select } from "../ui/Select";

const overlaps = [
  { value: "0", label: "Not at all: it was leaked" },
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
];

interface Props {
  webhook: Webhook;
  /** Called with the version that has the new secret. */
  onChanged: (webhook: Webhook) => void;
  onClose: () => void;
}

/** Makes a new signing secret, and shows it once. */
export function RotateDialog({ webhook, onChanged, onClose }: Props) {
  const cache = useQueryClient();
  const [overlap, setOverlap] = useState("86400");
  const rotate = useMutation({
    mutationFn: () => rotateSecret(webhook.id, Number(overlap)),
    // Without the new version an edit under way is a conflict, which shows when it is saved.
    onSuccess: () => void readWebhook(webhook.id).then(onChanged, () => undefined),
    onSettled: () => cache.invalidateQueries({ queryKey: webhookKeys.all }),
  });
  if (rotate.data) {
    const { signingSecret, formerSecretUntil } = rotate.data;
    return (
      <FormDialog title="New signing secret" onClose={onClose}>
        <p>Copy it to the receiver now. It is not shown again.</p>
        <Secret>{signingSecret}</Secret>
        <CopyButton text={signingSecret} what="the secret" />
        {formerSecretUntil && (
          <p>
            Until <ExactTime at={formerSecretUntil} /> requests are also signed with the previous secret.
          </p>
        )}
      </FormDialog>
    );
  }
  return (
    <FormDialog
      title={webhook.hasSigningSecret ? "Rotate the signing secret?" : "Sign requests?"}
      action={webhook.hasSigningSecret ? "Create new secret" : "Create secret"}
      busy={rotate.isPending}
      once
      problem={rotate.error ? reasonOf(rotate.error) : undefined}
      onSubmit={() => rotate.mutate()}
      onClose={onClose}
    >
      {webhook.hasSigningSecret ? (
        <>
          <Select label="Keep the current secret valid for" options={overlaps} value={overlap} onChange={setOverlap} />
          {webhook.formerSecretUntil && <p>The previous secret, which is still valid, stops signing now.</p>}
        </>
      ) : (
        <p>
          Requests are then signed according to Standard Webhooks, so that the receiver can verify where they come from.
        </p>
      )}
    </FormDialog>
  );
}
