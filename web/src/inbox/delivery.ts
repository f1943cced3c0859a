import type { DeliverySummary } from "../api/client";
import { exactTime } from "../ui/time";
import { messagesWord, number, plural } from "../ui/words";

export type DeliveryTone = "delivered" | "pending" | "retrying" | "failed" | "suppressed" | "discarded";

/**
 * The state of the messages of an alert, or of several, worst first, in a short form for a row and as a sentence.
 * `next` says when the next attempt is: "in 48 s".
 */
export function deliveryWords(
  { total, delivered, retrying, failed, suppressed, discarded, nextAttemptAt, quietUntil }: DeliverySummary,
  next: string,
): { tone: DeliveryTone; short: string; long: string } | undefined {
  if (total === 0) return undefined;
  const of = `${number(delivered)} of ${messagesWord(total)} delivered`;
  // An attempt that is due now, or a clock that differs, must not show a time in the past.
  const when = next.startsWith("in ") ? next : "now";
  if (failed > 0) {
    return {
      tone: "failed",
      short: `${failed}/${total}`,
      long: `${number(failed)} of ${number(total)} failed permanently, ${of}`,
    };
  }
  if (retrying > 0) {
    return {
      tone: "retrying",
      short: nextAttemptAt === undefined ? "retrying" : `retry ${when}`,
      long: `${of}, ${number(retrying)} to be retried`,
    };
  }
  if (quietUntil !== undefined) {
    return { tone: "pending", short: "held", long: `${of}, held by quiet hours until ${exactTime(quietUntil)}` };
  }
  if (discarded > 0 && delivered + suppressed + discarded === total) {
    const all = discarded === total;
    return {
      tone: "discarded",
      short: all ? "discarded" : `${delivered}/${total}`,
      long: all
        ? `${plural(total, "The message was", `All ${messagesWord(total)} were`)} discarded`
        : `${of}, ${number(discarded)} discarded`,
    };
  }
  if (suppressed > 0 && delivered + suppressed === total) {
    const all = suppressed === total;
    return {
      tone: "suppressed",
      short: all ? "suppressed" : `${delivered}/${total}`,
      long: all
        ? `${plural(total, "The message was", `All ${messagesWord(total)} were`)} suppressed by a silence`
        : `${of}, ${number(suppressed)} suppressed by a silence`,
    };
  }
  return { tone: delivered === total ? "delivered" : "pending", short: `${delivered}/${total}`, long: of };
}
