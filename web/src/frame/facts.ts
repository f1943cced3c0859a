import type { Status } from "../api/client";
import type { Connection } from "../api/live";
import { lag, minuteTime, span } from "../ui/time";

export interface Fact {
  key: string;
  text: string;
  tone: "good" | "quiet" | "warn" | "bad";
}

/** Evaluation runs every second and settles a little; more than this behind deserves to be noticed. */
export const lateSeconds = 15;
const owedLongSeconds = 60;

/**
 * What the line under the header says, the most important first: whether what is on the page is fresh, whether Tocsin
 * reaches what it needs, whether rules are evaluated, whether messages get out.
 */
export function facts(connection: Connection, status: Status | undefined, reachable: boolean): readonly Fact[] {
  const list: Fact[] = [freshness(connection, reachable)];
  // What was known last says nothing about the present.
  if (!status || !reachable) return list;
  for (const dependency of status.dependencies.filter((d) => !d.reachable)) {
    const why = dependency.error ? `: ${dependency.error}` : "";
    list.push({ key: dependency.name, text: `${dependency.name} cannot be reached${why}`, tone: "bad" });
  }
  const { rules, outbox } = status;
  if (rules && rules.failing > 0) {
    list.push({ key: "failing", text: `${count(rules.failing, "rule")} not evaluated`, tone: "bad" });
  }
  if (rules && rules.enabled === 0) {
    list.push({ key: "lag", text: "No rule is enabled", tone: "warn" });
  } else if (rules?.slowestLagSeconds !== undefined) {
    const isLate = rules.slowestLagSeconds > lateSeconds;
    const whose = isLate && rules.slowestRuleName ? ` (${rules.slowestRuleName})` : "";
    list.push({
      key: "lag",
      text: `Evaluation ${lag(rules.slowestLagSeconds)}${whose}`,
      tone: isLate ? "warn" : "quiet",
    });
  }
  if (rules?.lookingBackTo) {
    list.push({
      key: "lookingBack",
      text: `${count(rules.lookingBack, "rule")} looking back to ${minuteTime(rules.lookingBackTo, Date.parse(status.now))}`,
      tone: "quiet",
    });
  }
  if (outbox) {
    const age = outbox.oldestAgeSeconds;
    list.push({
      key: "outbox",
      text:
        outbox.depth === 0
          ? "No message owed"
          : `${owed(outbox)} owed${age === undefined ? "" : `, oldest ${span(age)}`}`,
      tone: (age ?? 0) > owedLongSeconds ? "warn" : "quiet",
    });
  }
  return list;
}

function freshness(connection: Connection, reachable: boolean): Fact {
  if (!reachable) {
    const what = connection === "live" ? "Tocsin does not answer" : "Offline";
    return { key: "connection", text: `${what}: showing what was known last`, tone: "bad" };
  }
  switch (connection) {
    case "live":
      return { key: "connection", text: "Live", tone: "good" };
    case "connecting":
      return { key: "connection", text: "Connecting…", tone: "quiet" };
    case "reconnecting":
      return { key: "connection", text: "Reconnecting…", tone: "warn" };
    case "paused":
      return { key: "connection", text: "Paused", tone: "quiet" };
  }
}

/** How much is owed: what was counted, or what is estimated to the third digit. */
export function owed({ depth, estimated }: NonNullable<Status["outbox"]>): string {
  return estimated ? `about ${count(Number(depth.toPrecision(3)), "message")}` : count(depth, "message");
}

function count(n: number, noun: string): string {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}
