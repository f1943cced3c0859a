import { useState } from "react";
import type { Webhook } from "../api/client";
import { Button } from "../ui/Button";
import { Ago } from "../ui/Instant";
import { IconKey, IconPause, IconPending, IconPlay } from "../ui/icons";
import { useRetireSecret, useSwitch } from "./changes";
import { Health } from "./Health";
import { RotateDialog } from "./RotateDialog";
import { TestDialog } from "./TestDialog";
import styles from "./webhooks.module.css";

interface Props {
  webhook: Webhook;
  /** Told of each version that is made here, so that an edit under way can build on it. */
  onChanged: (webhook: Webhook) => void;
}

/** How a webhook is doing, and what can be done besides editing it. */
export function WebhookPanel({ webhook, onChanged }: Props) {
  const [open, setOpen] = useState<"test" | "rotate">();
  const flip = useSwitch(onChanged);
  const retire = useRetireSecret(onChanged);
  return (
    <section className={styles.panel} aria-label="State">
      <div>
        <Health webhook={webhook} />
        {webhook.formerSecretUntil && (
          <p>
            A former secret signs, too; it ends <Ago at={webhook.formerSecretUntil} stop />.{" "}
            <Button look="quiet" disabled={retire.isPending} onClick={() => retire.mutate(webhook)}>
              End it now
            </Button>
          </p>
        )}
      </div>
      <div className={styles.actions}>
        <Button onClick={() => setOpen("test")}>
          <IconPending size={16} aria-hidden="true" />
          Test
        </Button>
        {webhook.kind === "generic" && (
          <Button onClick={() => setOpen("rotate")}>
            <IconKey size={16} aria-hidden="true" />
            {webhook.hasSigningSecret ? "Rotate the secret" : "Sign requests"}
          </Button>
        )}
        <Button disabled={flip.isPending} onClick={() => flip.mutate(webhook)}>
          {webhook.enabled ? <IconPause size={16} aria-hidden="true" /> : <IconPlay size={16} aria-hidden="true" />}
          {webhook.enabled ? "Disable" : "Enable"}
        </Button>
      </div>
      {open === "test" && <TestDialog webhook={webhook} onClose={() => setOpen(undefined)} />}
      {open === "rotate" && <RotateDialog webhook={webhook} onChanged={onChanged} onClose={() => setOpen(undefined)} />}
    </section>
  );
}
