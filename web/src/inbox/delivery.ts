import type { DeliverySummary } from "../api/client";
import { ago } from "../ui/time";

export type DeliveryTone = "delivered" | "owed" | "retrying" | "failed";

/** What became of an alert's messages, as short as a row needs it, and in a sentence. Worst first. */
export function deliveryWords(
  { total, delivered, retrying, failed, nextAttemptAt }: DeliverySummary,
  now: number,
): { tone: DeliveryTone; short: string; long: string } | undefined {
  if (total === 0) return undefined;
  const of = `${delivered} of ${total} ${total === 1 ? "message" : "messages"} delivered`;
  const next = nextAttemptAt === undefined ? "" : ago(nextAttemptAt, now);
  // An attempt that is due, or a clock that differs, is no time in the past.
  const when = next.startsWith("in ") ? next : "now";
  if (failed > 0) {
    return { tone: "failed", short: `${failed}/${total}`, long: `${failed} of ${total} failed for good, ${of}` };
  }
  if (retrying > 0) {
    return {
      tone: "retrying",
      short: nextAttemptAt === undefined ? "trying" : `next try ${when}`,
      long: `${of}, ${retrying} to be tried again`,
    };
  }
  return { tone: delivered === total ? "delivered" : "owed", short: `${delivered}/${total}`, long: of };
}
