import { expect, test } from "vitest";
import type { Status } from "../api/client";
import { announcement, facts } from "./facts";

const healthy: Status = {
  replicaId: "a",
  version: "dev",
  startedAt: "2026-11-21T10:00:00Z",
  now: "2026-11-21T10:00:00Z",
  ready: true,
  dependencies: [
    { name: "postgres", reachable: true },
    { name: "clickhouse", reachable: true },
  ],
  rules: {
    total: 3,
    enabled: 2,
    failing: 0,
    backfilling: 0,
    lookingBack: 0,
    slowestLagSeconds: 1.4,
    slowestRuleName: "Orders",
  },
  outbox: { depth: 0, estimated: false },
};
const none = { failed: 0, exhausted: 0 };
const texts = (...args: Parameters<typeof facts>) => facts(...args).map(({ text, tone }) => `${tone}: ${text}`);

test("a healthy system is quiet", () => {
  expect(texts("live", healthy, true, none)).toEqual([
    "good: Live",
    "quiet: Evaluation 1 s behind",
    "quiet: All messages delivered",
  ]);
});

test("messages that failed for good are not delivered, whatever else waits", () => {
  const messages = { failed: 1, exhausted: 2 };
  // What is well follows what is not: a phone has no room for all.
  expect(texts("live", healthy, true, messages)).toEqual([
    "good: Live",
    "warn: 3 messages failed",
    "quiet: Evaluation 1 s behind",
  ]);
  const waiting = { ...healthy, outbox: { depth: 2, estimated: false } };
  expect(texts("live", waiting, true, messages).slice(1)).toEqual([
    "warn: 3 messages failed",
    "quiet: Evaluation 1 s behind",
    "quiet: 2 messages to deliver",
  ]);
  expect(texts("live", healthy, true, { ...none, failed: 10_000 })).toContain("warn: 10,000+ messages failed");
  expect(announcement(facts("live", healthy, true, messages))).toBe("Some messages failed.");
});

test("whether all messages are delivered is not said before it is known", () => {
  expect(texts("live", healthy, true)).toEqual(["good: Live", "quiet: Evaluation 1 s behind"]);
});

test("trouble is named, the worst first", () => {
  const status: Status = {
    ...healthy,
    dependencies: [{ name: "clickhouse", reachable: false, error: "Cannot be reached; the log shows the reason" }],
    rules: {
      total: 3,
      enabled: 2,
      failing: 2,
      backfilling: 0,
      lookingBack: 0,
      slowestLagSeconds: 240,
      slowestRuleName: "Orders",
    },
    outbox: { depth: 1200, estimated: false, oldestAgeSeconds: 400 },
  };
  expect(texts("reconnecting", status, true)).toEqual([
    "warn: Reconnecting…",
    "bad: clickhouse: Cannot be reached; the log shows the reason",
    "bad: 2 rules cannot be evaluated",
    "warn: Evaluation 4 min behind (Orders)",
    "warn: 1,200 messages to deliver, oldest 6 min",
  ]);
});

test("a look-back that is not done is shown, and is no problem", () => {
  const rules = {
    total: 3,
    enabled: 2,
    failing: 0,
    backfilling: 2,
    lookingBack: 2,
    backfillFrom: new Date(2026, 10, 21, 9, 58, 12).toISOString(),
  };
  const now = new Date(2026, 10, 21, 10, 0).toISOString();
  expect(texts("live", { ...healthy, rules, now }, true)).toContain("quiet: 2 rules backfilling from 09:58");
});

test("a number too large to count is shown roughly", () => {
  const outbox = { depth: 987_654, estimated: true, oldestAgeSeconds: 30 };
  expect(texts("live", { ...healthy, outbox }, true)).toContain(
    "quiet: about 988,000 messages to deliver, oldest 30 s",
  );
});

test("without an answer only the connection is known", () => {
  expect(texts("connecting", undefined, true)).toEqual(["quiet: Connecting…"]);
  expect(texts("live", healthy, false)).toEqual(["bad: Tocsin cannot be reached: showing the last known state"]);
  expect(texts("polling", healthy, true)[0]).toBe("warn: Not live: refreshed every 20 s");
  expect(announcement(facts("polling", healthy, true))).toBe("Not live.");
  expect(texts("polling", healthy, false)).toEqual(["bad: Offline: showing the last known state"]);
  expect(texts("reconnecting", healthy, false)).toEqual(["bad: Offline: showing the last known state"]);
});

test("a screen reader hears that a problem begins, and nothing while only its figures change", () => {
  const late = (slowestLagSeconds: number, depth: number): Status => ({
    ...healthy,
    rules: { total: 3, enabled: 2, failing: 0, backfilling: 0, lookingBack: 0, slowestLagSeconds },
    outbox: { depth, estimated: false, oldestAgeSeconds: slowestLagSeconds },
  });
  const said = (status: Status) => announcement(facts("live", status, true));
  expect(said(healthy)).toBe("");
  expect(said(late(61, 5))).toBe("Evaluation is behind. Messages are waiting to be delivered.");
  expect(said(late(400, 912))).toBe(said(late(61, 5)));
  expect(announcement(facts("reconnecting", healthy, false))).toBe("Offline.");
});
