import { expect, test } from "vitest";
import type { RuleChange } from "../api/client";
import { deedOf, linesOf } from "./history";

const change = (rest: Partial<RuleChange>): RuleChange => ({
  id: 1,
  at: "2026-11-21T14:00:00Z",
  actor: "ada@example.com",
  actorKind: "user",
  action: "update",
  ...rest,
});

test.each<[string, Partial<RuleChange>]>([
  ["created the rule", { action: "create", after: { name: "x" } }],
  ["changed the rule", { before: { name: "x" }, after: { name: "y" } }],
  ["disabled the rule", { before: { enabled: true }, after: { enabled: false } }],
  ["added the webhook “#ops”", { action: "bind", after: { webhookId: "w", webhook: "#ops" } }],
  ["removed the webhook “#ops”", { action: "unbind", before: { webhookId: "w", webhook: "#ops" } }],
  ["sent a test message", { action: "request", operation: "testRule" }],
])("%s", (want, rest) => {
  expect(deedOf(change(rest))).toBe(want);
});

test("fields are shown by the names of the page, lists by what was added and removed", () => {
  const lines = linesOf(
    change({
      before: { scope: { applications: ["orders"] }, lookBackSeconds: 3600, severity: "INFO" },
      after: { scope: { applications: ["billing", "orders"] }, lookBackSeconds: 60, severity: "CRITICAL" },
    }),
  );
  expect(lines).toEqual([
    { label: "Look-back", was: "1 h", is: "1 min" },
    { label: "Applications", added: "billing" },
    { label: "Severity", was: "Info", is: "Critical" },
  ]);
});

test("a field that the page does not know keeps its own name", () => {
  expect(linesOf(change({ before: { colour: null }, after: { colour: "red" } }))).toEqual([
    { label: "colour", is: "red" },
  ]);
});

test("what is stored together is shown as the fields of the page", () => {
  const lines = linesOf(
    change({
      before: {
        about: { note: "Call Kim." },
        absence: {},
        measure: { percent: 5 },
        groupAttribute: "",
        resolution: {},
      },
      after: {
        about: { owner: "Orders", labels: { tier: "2", area: "logistics" } },
        absence: {
          expected: ["a"],
          calendar: { timeZone: "UTC", weekdays: ["MON"], from: "08:00", to: "18:00" },
        },
        measure: { percent: 10 },
        groupAttribute: "customer",
        resolution: { afterSeconds: 86_400 },
      },
    }),
  );
  expect(lines).toEqual([
    { label: "Hours", is: "Mon from 08:00 to 18:00 (UTC)" },
    { label: "Expected", added: "a" },
    { label: "Attribute to group by", is: "customer" },
    { label: "Labels", added: "area=logistics and tier=2" },
    { label: "Note", was: "Call Kim." },
    { label: "Owner", is: "Orders" },
    { label: "Ratio", was: "5%", is: "10%" },
    { label: "Resolve", is: "after 1 d" },
  ]);
});
