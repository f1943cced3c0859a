import type { NotificationCounts, Status } from "../api/client";
import { type Connection, pollMs } from "../api/live";
import { mostCounted } from "../api/notifications";
import { lag, minuteTime, span } from "../ui/time";
import { counted, number } from "../ui/words";

type FailedCounts = Pick<NotificationCounts, "failed" | "exhausted">;

export interface Fact {
  key: string;
  text: string;
  tone: "good" | "quiet" | "warn" | "bad";
  /** The announcement of a problem: without numbers, so that it is announced once. */
  said?: string;
  /** Which messages the fact is about, if it links to them. */
  deliveries?: readonly string[];
}

/** Evaluation runs every second and has a settle time; a longer delay should be noticed. */
export const lateSeconds = 15;
/** A message that waits longer should be noticed. */
export const waitingLongSeconds = 60;

/** The announcement of a screen reader: the present problems, until they are over. */
export function announcement(shown: readonly Fact[]): string {
  return shown.flatMap(({ said }) => said ?? []).join(" ");
}

/**
 * The facts in the line under the header, most important first: whether the page is fresh, whether
 * Tocsin reaches its dependencies, whether rules are evaluated, whether messages are delivered.
 */
export function facts(
  connection: Connection,
  status: Status | undefined,
  reachable: boolean,
  counts?: FailedCounts,
): readonly Fact[] {
  const list: Fact[] = [freshness(connection, reachable)];
  // An old answer says nothing about the present.
  if (!status || !reachable) return list;
  for (const dependency of status.dependencies.filter((d) => !d.reachable)) {
    const why = dependency.error ? `: ${dependency.error}` : " cannot be reached";
    list.push({
      key: dependency.name,
      text: `${dependency.name}${why}`,
      tone: "bad",
      said: `${dependency.name} cannot be used.`,
    });
  }
  const { rules, outbox } = status;
  if (rules && rules.failing > 0) {
    const text = `${counted(rules.failing, "rule")} cannot be evaluated`;
    list.push({ key: "failing", text, tone: "bad", said: "Some rules cannot be evaluated." });
  }
  if (rules && rules.enabled === 0) {
    list.push({ key: "lag", text: "No rules enabled", tone: "warn" });
  } else if (rules?.slowestLagSeconds !== undefined) {
    const isLate = rules.slowestLagSeconds > lateSeconds;
    const whose = isLate && rules.slowestRuleName ? ` (${rules.slowestRuleName})` : "";
    list.push({
      key: "lag",
      text: `Evaluation ${lag(rules.slowestLagSeconds)}${whose}`,
      tone: isLate ? "warn" : "quiet",
      ...(isLate ? { said: "Evaluation is behind." } : {}),
    });
  }
  if (rules?.backfillFrom) {
    list.push({
      key: "backfilling",
      text: `${counted(rules.backfilling, "rule")} backfilling from ${minuteTime(rules.backfillFrom, Date.parse(status.now))}`,
      tone: "quiet",
    });
  }
  const lost = undelivered(counts);
  if (lost) {
    list.push({
      key: "undelivered",
      text: lost,
      tone: "warn",
      said: "Some messages failed.",
      deliveries: failedStatuses,
    });
  }
  if (outbox && (outbox.depth > 0 || (counts && !lost))) {
    const age = outbox.oldestAgeSeconds;
    const isOld = (age ?? 0) > waitingLongSeconds;
    list.push({
      key: "outbox",
      text:
        outbox.depth === 0
          ? "All messages delivered"
          : `${pending(outbox)} to deliver${age === undefined ? "" : `, oldest ${span(age)}`}`,
      tone: isOld ? "warn" : "quiet",
      ...(isOld ? { said: "Messages are waiting to be delivered." } : {}),
    });
  }
  // A phone has room for two or three.
  const isQuiet = ({ tone }: Fact) => tone === "quiet";
  return [...list.filter((fact) => !isQuiet(fact)), ...list.filter(isQuiet)];
}

/** The statuses of messages that failed for good, as an address has them. */
export const failedStatuses = ["failed", "exhausted"];

/** How many messages failed for good: "2 messages failed". Empty if none did, or if it is not known. */
export function undelivered({ failed, exhausted }: FailedCounts = { failed: 0, exhausted: 0 }): string {
  const count = failed + exhausted;
  if (count === 0) return "";
  return Math.max(failed, exhausted) < mostCounted
    ? `${counted(count, "message")} failed`
    : `${number(mostCounted)}+ messages failed`;
}

function freshness(connection: Connection, reachable: boolean): Fact {
  if (!reachable) {
    const what = connection === "live" ? "Tocsin cannot be reached" : "Offline";
    return { key: "connection", text: `${what}: showing the last known state`, tone: "bad", said: `${what}.` };
  }
  switch (connection) {
    case "live":
      return { key: "connection", text: "Live", tone: "good" };
    case "connecting":
      return { key: "connection", text: "Connecting…", tone: "quiet" };
    case "reconnecting":
      return { key: "connection", text: "Reconnecting…", tone: "warn", said: "Reconnecting." };
    case "polling":
      return {
        key: "connection",
        text: `Not live: refreshed every ${span(pollMs / 1000)}`,
        tone: "warn",
        said: "Not live.",
      };
    case "paused":
      return { key: "connection", text: "Paused", tone: "quiet" };
  }
}

/** How many messages are pending: counted, or estimated to three digits. */
export function pending({ depth, estimated }: NonNullable<Status["outbox"]>): string {
  return estimated ? `about ${counted(Number(depth.toPrecision(3)), "message")}` : counted(depth, "message");
}
