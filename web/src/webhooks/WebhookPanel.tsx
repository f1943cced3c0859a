import { useState } from "react";
import type { Webhook } from "../api/client";
import { Button } from "../ui/Button";
import { ConfirmDialog } from "../ui/ConfirmDialog";
import { Ago } from "../ui/Instant";
import { IconKey, IconKeyOff, IconPause, IconPending, IconPlay } from "../ui/icons";
import { useRetireSecret, useSwitch } from "./changes";
import { Health } from "./Health";
import { RotateDialog } from "./RotateDialog";
import { TestDialog } from "./TestDialog";
import styles from "./webhooks.module.css";

interface Props {
  webhook: Webhook;
  /** Called with each version that is made here, so that an edit under way can be based on it. */
  onChanged: (webhook: Webhook) => void;
}

/** The state of a webhook, and the actions other than editing it. */
export function WebhookPanel({ webhook, onChanged }: Props) {
  const [open, setOpen] = useState<"test" | "rotate" | "retire">();
  const flip = useSwitch(onChanged);
  return (
    <section className={styles.panel} aria-label="State">
      <div>
        <Health webhook={webhook} />
        {webhook.kind === "generic" && !webhook.preset && <Signing webhook={webhook} />}
        {webhook.slack?.hasSigningSecret && (
          <p className={styles.signing}>
            Request URL of the app's buttons:{" "}
            <span className="mono">{window.location.origin + webhook.slack.interactionsPath}</span>
          </p>
        )}
      </div>
      <div className={styles.actions}>
        <Button onClick={() => setOpen("test")}>
          <IconPending size={16} aria-hidden="true" />
          Test
        </Button>
        {webhook.kind === "generic" && !webhook.preset && (
          <Button onClick={() => setOpen("rotate")}>
            <IconKey size={16} aria-hidden="true" />
            {webhook.hasSigningSecret ? "Rotate secret" : "Sign requests"}
          </Button>
        )}
        {webhook.formerSecretUntil && (
          <Button onClick={() => setOpen("retire")}>
            <IconKeyOff size={16} aria-hidden="true" />
            Retire previous secret
          </Button>
        )}
        <Button busy={flip.isPending} onClick={() => flip.mutate(webhook)}>
          {webhook.enabled ? <IconPause size={16} aria-hidden="true" /> : <IconPlay size={16} aria-hidden="true" />}
          {webhook.enabled ? "Disable" : "Enable"}
        </Button>
      </div>
      {open === "test" && <TestDialog webhook={webhook} onClose={() => setOpen(undefined)} />}
      {open === "rotate" && <RotateDialog webhook={webhook} onChanged={onChanged} onClose={() => setOpen(undefined)} />}
      {open === "retire" && <RetireDialog webhook={webhook} onChanged={onChanged} onClose={() => setOpen(undefined)} />}
    </section>
  );
}

/** How many secrets sign requests, and what to do while there are two. */
function Signing({ webhook: { hasSigningSecret, formerSecretUntil } }: { webhook: Webhook }) {
  if (!hasSigningSecret) return <p className={styles.signing}>Requests are not signed.</p>;
  if (!formerSecretUntil) return <p className={styles.signing}>Requests are signed with one secret.</p>;
  return (
    <p className={styles.signing}>
      Requests are signed with two secrets. Copy the new one to the receiver; the previous one expires{" "}
      <Ago at={formerSecretUntil} stop />.
    </p>
  );
}

/** Asks before requests are refused by a receiver that only has the previous secret. */
function RetireDialog({ webhook, onChanged, onClose }: Props & { onClose: () => void }) {
  const retire = useRetireSecret(onChanged);
  return (
    <ConfirmDialog
      title="Retire the previous secret?"
      action="Retire it now"
      busy={retire.isPending}
      error={retire.error}
      onConfirm={() => retire.mutate(webhook, { onSuccess: onClose })}
      onClose={onClose}
    >
      From then on, only the new secret signs requests. A receiver that still verifies signatures with the previous
      secret refuses every message.
    </ConfirmDialog>
  );
}
