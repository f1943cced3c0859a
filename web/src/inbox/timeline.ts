import type { Alert, Attempt, Notification } from "../api/client";
import { number } from "../ui/words";

/** One past or future event of an alert. */
export type Happening = { at: string } & (
  | { kind: "reached" | "fired" | "reminded" | "woke" | "escalated" }
  | { kind: "acknowledged" | "resolved"; by: string | undefined }
  | { kind: "snoozed"; by: string | undefined; until: string }
  | { kind: "attempt"; attempt: Attempt; notification: Notification }
  | { kind: "settled"; notification: Notification }
  | { kind: "next"; notification: Notification }
);

/** Events at the same instant are in the order in which they cause each other. */
const rank: Record<Happening["kind"], number> = {
  reached: 0,
  fired: 0,
  reminded: 0,
  woke: 0,
  escalated: 0,
  attempt: 1,
  settled: 2,
  acknowledged: 3,
  resolved: 4,
  snoozed: 5,
  next: 6,
};

/**
 * One timeline for what people did to an alert and what became of its messages, oldest first. A
 * delivery or a refusal is shown by its attempt. Any other end has its own entry, because it
 * follows from no single attempt.
 */
export function timeline(alert: Alert, notifications: readonly Notification[]): readonly Happening[] {
  const happenings: Happening[] = [{ kind: alert.state === "PENDING" ? "reached" : "fired", at: alert.firedAt }];
  // A reminder has the same instant for each webhook.
  const reminders = notifications.filter(({ reason }) => reason === "REMINDER").map(({ createdAt }) => createdAt);
  for (const at of new Set(reminders)) happenings.push({ kind: "reminded", at });
  const ends = notifications.filter(({ reason }) => reason === "SNOOZE_ENDED").map(({ createdAt }) => createdAt);
  for (const at of oncePerEnd(ends)) happenings.push({ kind: "woke", at });
  const steps = notifications.filter(({ reason }) => reason === "ESCALATED").map(({ createdAt }) => createdAt);
  for (const at of oncePerEnd(steps)) happenings.push({ kind: "escalated", at });
  if (alert.acknowledgedAt) {
    happenings.push({ kind: "acknowledged", at: alert.acknowledgedAt, by: alert.acknowledgedBy });
  }
  const { snoozedAt, snoozedUntil: until } = alert;
  if (snoozedAt && until) happenings.push({ kind: "snoozed", at: snoozedAt, by: alert.snoozedBy, until });
  if (alert.resolvedAt) happenings.push({ kind: "resolved", at: alert.resolvedAt, by: alert.resolvedBy });
  for (const notification of notifications) {
    for (const attempt of notification.attempts ?? []) {
      happenings.push({ kind: "attempt", at: attempt.startedAt, attempt, notification });
    }
    if (notification.settledAt && !notification.attempts?.some(decides)) {
      happenings.push({ kind: "settled", at: notification.settledAt, notification });
    }
    if (notification.quietUntil) happenings.push({ kind: "next", at: notification.quietUntil, notification });
    if (notification.nextAttemptAt) happenings.push({ kind: "next", at: notification.nextAttemptAt, notification });
  }
  // Future entries come last, whatever the clocks of the machines are.
  return happenings.sort(
    (a, b) =>
      Number(a.kind === "next") - Number(b.kind === "next") ||
      Date.parse(a.at) - Date.parse(b.at) ||
      rank[a.kind] - rank[b.kind],
  );
}

/** The messages of one snooze or step are written one after the other, within moments. */
function oncePerEnd(instants: readonly string[]): readonly string[] {
  const sorted = [...instants].sort((a, b) => Date.parse(a) - Date.parse(b));
  return sorted.filter((at, place) => {
    const before = sorted[place - 1];
    return before === undefined || Date.parse(at) - Date.parse(before) > 1000;
  });
}

function decides({ verdict }: Attempt): boolean {
  return verdict === "DELIVERED" || verdict === "REFUSED" || verdict === "GONE";
}

/** The subject of a message, unless it is that the alert fired: then "". */
export function reasonWord({ reason }: Notification): string {
  switch (reason) {
    case "REMINDER":
      return "reminder";
    case "SNOOZE_ENDED":
      return "end of the snooze";
    case "ESCALATED":
      return "escalation";
    case "RESOLVED":
      return "end";
    case "ACKNOWLEDGED":
      return "acknowledged";
    case "REOPENED":
      return "reopened";
    case "RULE_RECOVERED":
    case "SOURCE_RECOVERED":
      return "recovery";
    case "FIRED":
    case "RULE_FAILING":
    case "SOURCE_FAILING":
    case "WEBHOOK_OFF":
    case "WEBHOOK_FAILING":
    case "DIGEST":
      return "";
    case "UNDELIVERED":
      return "not delivered";
  }
}

/** The message that contains it, if it is another one; otherwise "". */
export function digestWord({ digestId, digestSize }: Notification): string {
  if (digestId === undefined) return "";
  return digestSize === undefined ? "in a digest" : `in a digest of ${number(digestSize)}`;
}

/** The request and the answer, as text; "" if it is not stored any more. */
export function exchangeText({ request, responseHead, response }: Attempt): string {
  const lines = (fields: readonly { name: string; value?: string; masked?: boolean }[]) =>
    fields.map(({ name, value, masked }) => `${name}: ${masked ? "(not stored)" : (value ?? "")}`);
  const parts: string[] = [];
  if (request) {
    parts.push(
      [
        `${request.method} ${request.host}`,
        ...lines(request.headers),
        `(body of ${request.bodyBytes} bytes, SHA-256 ${request.bodySha256})`,
      ].join("\n"),
    );
  }
  if (responseHead) {
    parts.push(
      [responseHead.statusLine, ...lines(responseHead.headers), ...(responseHead.truncated ? ["…"] : [])].join("\n"),
    );
  }
  if (response && parts.length > 0) parts.push(response);
  return parts.join("\n\n");
}

/** The status of an attempt's answer, with its protocol; empty when there was no answer. */
export function answerWord({ statusCode, request }: Attempt): string {
  if (statusCode === undefined) return "";
  return `${request?.method === "SMTP" ? "SMTP" : "HTTP"} ${statusCode}`;
}

/** The result of an attempt, in words. */
export function verdictWords(attempt: Attempt): { word: string; explanation: string } {
  switch (attempt.verdict) {
    case "DELIVERED":
      return { word: "Delivered", explanation: "" };
    case "RETRY":
      return { word: "Not delivered", explanation: "It will be retried." };
    case "THROTTLED":
      return { word: "Throttled", explanation: "The receiver asked for a pause." };
    case "REFUSED":
      return { word: "Refused", explanation: "The receiver refused this message permanently." };
    case "GONE":
      return {
        word: "Gone",
        explanation: "The receiver no longer accepts messages from this webhook. The webhook was disabled.",
      };
    case "UNDER_WAY":
      return { word: "In progress", explanation: "" };
    case "NOT_MADE":
      return { word: "Not sent", explanation: "" };
    case "UNKNOWN":
      return {
        word: "Unknown",
        explanation: "The process stopped before it could store the result. The message may have been sent.",
      };
  }
}
