import type { RuleReplay, RuleReplayMessages, RuleReplayPreview, RuleReplayRange } from "../api/client";
import { exactTime } from "../ui/time";
import { alertsWord, counted, messagesWord, number, plural } from "../ui/words";

export const messageChoices: readonly { value: RuleReplayMessages; label: string }[] = [
  { value: "NONE", label: "None" },
  { value: "DIGEST", label: "One digest" },
  { value: "EACH", label: "One per alert" },
];

/** The range between two instants in the API's form; undefined if it is empty. */
export function rangeOf(from: string, to: string): RuleReplayRange | undefined {
  const begins = new Date(from);
  const ends = new Date(to);
  if (!(begins < ends)) return undefined;
  return { from: begins.toISOString(), to: ends.toISOString() };
}

/** A digest contains about as many alerts at most. */
const digestSize = 5000;

/** How many digests are sent for so many alerts: "1 digest", "up to 4 digests". */
function digestsWord(alerts: number, webhooks: number): string {
  const each = Math.ceil(alerts / digestSize);
  return `${each > 1 && webhooks > 0 ? "Up to " : ""}${counted(each * webhooks, "digest")}`;
}

/** What a replay would do, in words. The number of webhooks is undefined if the routing policy chooses them. */
export function replayWords(
  { preview, existing }: RuleReplayPreview,
  messages: RuleReplayMessages,
  webhooks: number | undefined,
): string {
  const raised = preview.alerts - existing;
  const routed = webhooks === undefined;
  const sent = {
    NONE: "No messages are sent, except about exchanges for which the rule itself may still raise an alert.",
    DIGEST: routed
      ? "When it ends, digests will be sent to the webhooks that the routing policy chooses."
      : `${digestsWord(raised, webhooks)} will be sent when it ends.`,
    EACH: routed
      ? "Each alert will be sent to the webhooks that the routing policy chooses."
      : `${messagesWord(raised * webhooks)} will be sent.`,
  }[messages];
  const least = preview.truncated
    ? ` Only exchanges that started since ${exactTime(preview.coveredFrom)} were counted; there may be more.`
    : "";
  return `${counted(preview.alerts, "exchange")} ${plural(preview.alerts, "matches", "match")}, ${number(existing)} of them with an alert. The replay would raise ${alertsWord(raised)}. ${sent}${least}`;
}

const stateWords: Record<RuleReplay["state"], string> = {
  RUNNING: "Running",
  DONE: "Done",
  CANCELLED: "Cancelled",
  STOPPED: "Stopped",
  FAILED: "Failed",
};

/** The state of a replay, and what it has raised. */
export function progressWords({ state, matched, alerts }: RuleReplay): string {
  return `${stateWords[state]}: ${alertsWord(alerts)} raised, ${counted(matched, "exchange")} matched`;
}

/** How much of its range a replay has evaluated, from 0 to 1. */
export function evaluated({ from, to, at, state }: RuleReplay): number {
  if (state === "DONE") return 1;
  const [begin, end, now] = [from, to, at].map((text) => new Date(text).getTime()) as [number, number, number];
  return Math.min(1, Math.max(0, (now - begin) / (end - begin)));
}
