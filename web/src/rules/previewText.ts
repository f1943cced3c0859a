import type { RulePreview } from "../api/client";
import { minuteTime, secondTime } from "../ui/time";
import { counted, number } from "../ui/words";

export const spans = [
  { value: "1", label: "hour" },
  { value: "24", label: "24 h" },
  { value: "168", label: "7 days" },
] as const;

const spanLabel = (hours: number) => spans.find(({ value }) => value === String(hours))?.label ?? `${hours} h`;

/** "In the last 24 h, this would have raised 412 alerts: 1,236 messages." It is about the time in the answer. */
export function summary({ alerts, truncated, webhooks, from, to }: RulePreview): string {
  const hours = Math.round((Date.parse(to) - Date.parse(from)) / 3_600_000);
  const messages = webhooks.reduce((sum, { notifications }) => sum + notifications, 0);
  const raised = alerts === 0 ? "no alerts" : `${truncated ? "at least " : ""}${counted(alerts, "alert")}`;
  const sent = alerts > 0 && webhooks.length > 0 ? `: ${counted(messages, "message")}` : "";
  return `In the last ${spanLabel(hours)}, this would have raised ${raised}${sent}.`;
}

/** For each webhook that would have got something: "#ops: 412 messages, at most 94 a minute; it takes 60, so some would have waited." */
export function loads({ webhooks }: RulePreview): { id: string; text: string; exceeds: boolean }[] {
  return webhooks
    .filter(({ notifications }) => notifications > 0)
    .map(({ webhookId, webhookName, notifications, busiestMinute, ratePerSecond, exceedsRate }) => {
      const takes = ratePerSecond > 0 ? `; it takes ${number(Math.round(ratePerSecond * 60))}` : "";
      const waits = exceedsRate ? ", so some would have waited" : "";
      return {
        id: webhookId,
        text: `${webhookName}: ${counted(notifications, "message")}, at most ${number(busiestMinute)} a minute${takes}${waits}.`,
        exceeds: exceedsRate,
      };
    });
}

/** Nobody reads more alerts than this in a day. */
const muchPerDay = 500;

/** A warning if a rule would raise more than people can handle; otherwise "". */
export function volumeWarning({ alerts, from, to }: RulePreview): string {
  const days = (Date.parse(to) - Date.parse(from)) / 86_400_000;
  const perDay = days > 0 ? Math.round(alerts / days) : 0;
  // The preview of one hour may be of a storm, which says nothing about a whole day.
  if (alerts < muchPerDay || perDay < muchPerDay) return "";
  return `That is about ${number(perDay)} alerts a day. Narrow the scope or the filter, or alert on a number of exchanges instead.`;
}

/** Why the numbers are incomplete; "" if they are complete. */
export function shortfall({ truncated, coveredFrom, scanned }: RulePreview, now: number): string {
  if (!truncated) return "";
  const from = secondTime(coveredFrom, now);
  return `The preview stopped after ${counted(scanned, "exchange")}. It is complete only from ${from} on.`;
}

/** The text of a chart of the buckets, for people who do not see it. */
export function chartWords({ buckets, from, bucketSeconds }: RulePreview, now: number): string {
  const most = Math.max(0, ...buckets);
  if (most === 0) return "Alerts over time: none.";
  const at = (index: number) => new Date(new Date(from).getTime() + index * bucketSeconds * 1000).toISOString();
  const peak = buckets.indexOf(most);
  return `Alerts over time: peak of ${number(most)} between ${minuteTime(at(peak), now)} and ${minuteTime(at(peak + 1), now)}.`;
}
