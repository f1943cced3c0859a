import type { Attempt, Notification, NotificationReason } from "../api/client";
import { verdictWords } from "../inbox/timeline";
import { counted, number } from "../ui/words";

const reasons: Record<string, string> = {
  FIRED: "Alert",
  REMINDER: "Reminder",
  SNOOZE_ENDED: "Snooze ended",
  ESCALATED: "Escalated",
  ACKNOWLEDGED: "Acknowledged",
  RESOLVED: "Resolved",
  REOPENED: "Reopened",
  RULE_FAILING: "Rule cannot be evaluated",
  RULE_RECOVERED: "Rule can be evaluated again",
  SOURCE_FAILING: "Source cannot be read",
  SOURCE_RECOVERED: "Source can be read again",
  WEBHOOK_OFF: "Webhook is disabled",
  WEBHOOK_FAILING: "Webhook is not responding",
  UNDELIVERED: "Message not delivered",
} satisfies Partial<Record<NotificationReason | "WEBHOOK_OFF", string>>;

/** The subject of a message. */
export function subject({ reason, digestSize, digestId }: Notification): string {
  if (reason === "DIGEST") return `Digest of ${number(digestSize ?? 0)}`;
  const word = reasons[reason] ?? reason;
  return digestId === undefined ? word : `${word}, in a digest`;
}

/** The result of an attempt, as a sign with a meaning, so that nothing depends only on its hue. */
export function attemptSign(verdict: Attempt["verdict"]): { sign: string; tone: "good" | "bad" | "open" } {
  switch (verdict) {
    case "DELIVERED":
      return { sign: "✓", tone: "good" };
    case "RETRY":
    case "THROTTLED":
    case "REFUSED":
    case "GONE":
      return { sign: "✗", tone: "bad" };
    case "UNDER_WAY":
      return { sign: "…", tone: "open" };
    case "NOT_MADE":
      return { sign: "–", tone: "open" };
    case "UNKNOWN":
      return { sign: "?", tone: "open" };
  }
}

/** The results of attempts, in words: "unknown, not delivered, delivered". */
export function verdictsWord(verdicts: readonly Attempt["verdict"][]): string {
  return verdicts.map((verdict) => verdictWords({ verdict, number: 1, startedAt: "" }).word.toLowerCase()).join(", ");
}

/** How many attempts a message had. A settled message gets no more. */
export function attemptsWord(count: number, settled: boolean): string {
  if (count === 0) return settled ? "No attempts" : "No attempts yet";
  return counted(count, "attempt");
}

/** Whether a message waits and can be discarded by itself, without others in one digest. */
export function discardable({ status, digestId }: Pick<Notification, "status" | "digestId">): boolean {
  return (status === "PENDING" || status === "RETRYING") && digestId === undefined;
}

/** What a person's button does with a message; undefined if it is already due. */
export function retryWord({ status, quietUntil }: Pick<Notification, "status" | "quietUntil">): string | undefined {
  switch (status) {
    case "FAILED":
    case "EXHAUSTED":
    case "DISCARDED":
    case "DELIVERED":
      return "Send again";
    case "SUPPRESSED":
      return "Send anyway";
    case "RETRYING":
      return "Send now";
    case "PENDING":
      return quietUntil === undefined ? undefined : "Send now";
  }
}

export type Step = { at: string } & ({ kind: "attempt"; attempt: Attempt } | { kind: "retry"; by: string });

/** Attempts and actions of people on one timeline, oldest first. */
export function steps({ attempts = [], retries = [] }: Pick<Notification, "attempts" | "retries">): readonly Step[] {
  const all: Step[] = [
    ...retries.map(({ at, by }): Step => ({ kind: "retry", at, by })),
    ...attempts.map((attempt): Step => ({ kind: "attempt", at: attempt.startedAt, attempt })),
  ];
  return all.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

/** A body with each field of its JSON on its own line; other bodies are unchanged. */
export function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
