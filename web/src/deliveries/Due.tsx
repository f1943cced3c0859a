import { useQuery } from "@tanstack/react-query";
import { webhookHealth } from "../api/webhooks";
import { Ago } from "../ui/Instant";
import { useAtNow } from "../ui/now";

/** When the next attempt at a message is. A due message waits for a slot, or for its webhook. */
export function Due({ at, webhookId }: { at: string; webhookId: string }) {
  const waits = useAtNow((now) => Date.parse(at) > now);
  const { data: webhooks } = useQuery(webhookHealth());
  const health = webhooks?.find(({ id }) => id === webhookId)?.health;
  const ends = useAtNow((now) => Date.parse(health?.until ?? "") > now);
  if (waits) {
    return (
      <>
        retry <Ago at={at} />
      </>
    );
  }
  const until = health?.until && ends ? <Ago at={health.until} /> : "soon";
  switch (health?.state) {
    case "held":
      return <>held; resumes {until}</>;
    case "open":
      return <>next probe {until}</>;
    case "off":
      return "webhook disabled";
    default:
      return "due now";
  }
}
