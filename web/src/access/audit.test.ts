import { expect, test } from "vitest";
import type { AuditEntry } from "../api/access";
import { timeZone } from "../ui/time";
import { changes, deed, parseAuditSearch, toAuditFilter } from "./audit";

const entry = (change: Partial<AuditEntry>): AuditEntry => ({
  id: 1,
  at: "2026-11-21T12:00:00Z",
  actorKind: "user",
  actor: "ada@example.com",
  via: "session",
  action: "update",
  objectKind: "rule",
  ...change,
});

test("actions are described in words", () => {
  expect(deed(entry({ objectName: "Order failed" }))).toBe("changed rule “Order failed”");
  expect(deed(entry({ action: "create", objectKind: "token", objectName: "ci" }))).toBe("created token “ci”");
  expect(deed(entry({ action: "request", operation: "createSession", objectKind: "session" }))).toBe("signed in");
  expect(deed(entry({ action: "request", operation: "retryRule" }))).toBe("retried the evaluation of a rule");
  expect(deed(entry({ action: "request", operation: "other" }))).toBe("called other on rule");
});

test("a silence that was ended is shown as such", () => {
  const silence = { objectKind: "silence", objectName: "ERP maintenance" };
  expect(deed(entry({ ...silence, operation: "endSilence" }))).toBe("ended silence “ERP maintenance”");
  expect(deed(entry({ ...silence, operation: "updateSilence" }))).toBe("changed silence “ERP maintenance”");
});

test("changes of the routing policy and replays are described", () => {
  expect(deed(entry({ objectKind: "routing", objectName: "" }))).toBe("changed the routing policy");
  const replay = entry({ objectKind: "replay", objectName: "Order failed" });
  expect(deed({ ...replay, action: "create" })).toBe("started a replay of the rule “Order failed”");
  expect(deed({ ...replay, after: { state: "FAILED" } })).toBe(
    "reported that a replay of the rule “Order failed” failed",
  );
});

test("a note is named by its issue or its rule", () => {
  const note = { objectKind: "note", objectName: "java.net.ConnectException" };
  expect(deed(entry({ ...note, action: "create" }))).toBe("added a note to issue “java.net.ConnectException”");
  expect(deed(entry({ ...note, action: "delete", objectName: "" }))).toBe("deleted a note from an issue");
  const onRule = { objectKind: "note", objectName: "Failed orders" };
  const subject = { rule_id: "0192f0c1-0000-7000-8000-000000000900", group_key: "import" };
  expect(deed(entry({ ...onRule, action: "create", after: subject }))).toBe("added a note to rule “Failed orders”");
  expect(deed(entry({ ...onRule, action: "delete", before: subject }))).toBe(
    "deleted a note from rule “Failed orders”",
  );
  expect(deed(entry({ ...note, action: "create", after: { rule_id: null } }))).toContain("to issue");
});

test("actions on alerts are described by the new state and the number", () => {
  const one = entry({ objectKind: "alert", objectName: "orders: FAILED", before: { state: "FIRING" } });
  expect(deed({ ...one, after: { state: "ACKNOWLEDGED" } })).toBe("acknowledged alert “orders: FAILED”");
  const many = entry({
    objectKind: "alert",
    operation: "undoAlertAction",
    before: { state: "RESOLVED" },
    after: { state: "FIRING", alerts: 2746, ids: ["a", "b", "c", "d"] },
  });
  expect(deed(many)).toBe("restored 2,746 alerts");
  expect(changes(many)).toEqual(["state: RESOLVED → FIRING", "a, b, c and 2,743 more"]);
  expect(deed({ ...many, after: { state: "RESOLVED", alerts: 2, ids: ["a", "b"] } })).toBe("resolved 2 alerts");
  const assigned = { ...many, before: { assignee: null }, after: { assignee: "bo@x", alerts: 2, ids: ["a", "b"] } };
  expect(deed(assigned)).toBe("assigned 2 alerts to bo@x");
  expect(changes(assigned)).toEqual(["assignee: nothing → bo@x", "a, b"]);
});

test("changes are shown field by field, and long values are cut", () => {
  const lines = changes(
    entry({ before: { role: "viewer", name: "A" }, after: { role: "admin", name: "x".repeat(500) } }),
  );
  expect(lines[1]).toBe("role: viewer → admin");
  expect(lines[0]).toHaveLength("name: A → ".length + 121);
  expect(changes(entry({ before: { url: "(secret)" }, after: { url: "(secret)" } }))).toEqual([
    "url: (secret) → (secret)",
  ]);
  expect(changes(entry({ action: "create", after: { name: "A" } }))).toEqual([]);
  const scopes = { before: { scope: { routes: ["a", "b"] } }, after: { scope: { routes: ["b", "c"] } } };
  expect(changes(entry(scopes))).toEqual(["scope · routes: − a, + c"]);
  const labels = {
    before: { about: { labels: { costCentre: "7" } } },
    after: { about: { labels: { costCentre: "8" } } },
  };
  expect(changes(entry(labels))).toEqual(["labels · costCentre: 7 → 8"]);
});

test("the address holds which entries are wanted", () => {
  const search = parseAuditSearch({ about: "rule", by: "ada@example.com", id: "r1", x: 1 });
  expect(search).toEqual({ about: "rule", by: "ada@example.com", id: "r1" });
  expect(toAuditFilter(search)).toEqual({ objectKind: "rule", actor: "ada@example.com", objectId: "r1" });
  expect(parseAuditSearch({ about: "", by: ["a"], id: 3 })).toEqual({});
});

test("instants are shown by the reader's clock", () => {
  timeZone.set("utc");
  const snoozed = entry({
    objectKind: "alert",
    before: { snoozedUntil: null },
    after: { snoozedUntil: "2026-11-24T16:07:53.814+00:00" },
  });
  expect(changes(snoozed)).toEqual(["snoozed until: nothing → 24 Nov 2026, 16:07:53.814 UTC"]);
  timeZone.set("local");
});
