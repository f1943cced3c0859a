import type { Me } from "../api/access";
import type { Webhook } from "../api/client";
import { Drafts } from "../drafts/Drafts";
import { LeaveGuard } from "../ui/LeaveGuard";
import type { KeptWebhook } from "./form";
import type { useWebhookForm } from "./useWebhookForm";

interface Props {
  edit: ReturnType<typeof useWebhookForm>;
  /** The stored webhook; none for a new one. */
  webhook: Webhook | undefined;
  who: Me;
  onTake: (kept: KeptWebhook) => void;
  /** Whether the page is left because the work is done. */
  isDone: () => boolean;
}

/** The restored draft, and the question to people who leave with unsaved changes. */
export function Unsaved({ edit, webhook, who, onTake, isDone }: Props) {
  return (
    <>
      <Drafts
        name={who.name}
        restored={edit.restored}
        onRestart={() => edit.restart(webhook)}
        others={edit.others}
        onTake={onTake}
        onGiveUp={edit.giveUp}
      >
        {webhook ? "Secrets and URLs are not kept in drafts." : "Enter its URL and secrets again."}
      </Drafts>
      <LeaveGuard
        dirty={() => edit.dirty && !isDone()}
        losable={() => edit.losable && !isDone()}
        keep="Save as draft"
        onLeave={() => edit.restart(webhook)}
      >
        {webhook ? `Your changes to “${webhook.name}” have not been saved.` : "The webhook has not been created."} This
        browser keeps everything except its URL, headers and secrets.
      </LeaveGuard>
    </>
  );
}
