import { expect, test } from "vitest";
import type { Alert, Silence } from "../api/client";
import { differences, merged } from "./conflict";
import { blank, definitionOf, hasEnded, matchWords, pathOf, recurrenceWords, valuesFor, valuesOf } from "./form";

const stored: Silence = {
  id: "6f2c3c1e-5d0c-4c39-9a7e-0d6d4f6b2a00",
  version: 3,
  name: "ERP",
  reason: "upgrade",
  match: {
    rules: ["7f2c3c1e-5d0c-4c39-9a7e-0d6d4f6b2a00"],
    severities: ["CRITICAL"],
    labels: [{ key: "team", op: "EQUALS", value: "a" }],
    scope: { applications: ["orders"], notRoutes: ["probe"] },
    filter: {
      statuses: ["FAILED"],
      errorTypes: ["Timeout"],
      errorMessageNotContains: ["retry"],
      minDurationMs: 100,
      attributes: [{ key: "customer", op: "AT_LEAST", not: true, value: "2" }],
    },
  },
  startsAt: "2026-11-23T10:00:37.5Z",
  endsAt: "2026-11-24T10:00:00Z",
  recurrence: { timeZone: "Europe/Berlin", weekdays: ["MON", "FRI"], from: "22:00", durationMinutes: 90 },
  state: "ACTIVE",
  digest: true,
  suppressed: 2,
  digests: 0,
  createdAt: "2026-11-23T10:00:00Z",
  createdBy: "ada",
  updatedAt: "2026-11-23T10:00:00Z",
  updatedBy: "ada",
};

test("an edit that changes nothing says what is stored", () => {
  const { name, reason, match, recurrence, startsAt, endsAt, digest } = stored;
  expect(definitionOf(valuesOf(stored))).toEqual({ name, reason, match, recurrence, startsAt, endsAt, digest });
});

test("a blank form says nothing about alerts", () => {
  expect(definitionOf({ ...blank(), name: " n " })).toEqual({ name: "n", reason: "", match: {} });
});

test("a complaint of the server finds its field", () => {
  expect(pathOf("match.scope.notRoutes")).toBe("scope.notRoutes");
  expect(pathOf("match.filter.errorMessageMatches")).toBe("messageMatches");
  expect(pathOf("recurrence.durationMinutes")).toBe("hours");
  expect(pathOf("match.labels")).toBe("labels");
  expect(pathOf("endsAt")).toBe("endsAt");
  expect(pathOf("match")).toBe("severities");
});

test("a silence that recurs has not ended when only its windows have", () => {
  const before = Date.parse("2026-11-24T09:00:00Z");
  expect(hasEnded(stored, before)).toBe(false);
  expect(hasEnded({ ...stored, state: "PAST" }, before)).toBe(false);
  expect(hasEnded({ ...stored, state: "PAST" }, Date.parse("2026-11-24T10:00:00Z"))).toBe(true);
  expect(hasEnded({ ...stored, state: "PAST", endedAt: "2026-11-24T08:00:00Z" }, before)).toBe(true);
});

const alert = {
  id: "1",
  ruleId: "7f2c3c1e-5d0c-4c39-9a7e-0d6d4f6b2a00",
  ruleName: "Orders failed",
  title: "t",
  exchange: { application: "orders", route: "to-erp", environment: "live", errorType: "Refused" },
} as unknown as Alert;

test("the silence of an alert is about its rule, place and error, for an hour", () => {
  const values = valuesFor(alert);
  expect(definitionOf(values)).toMatchObject({
    name: "Orders failed",
    match: {
      rules: [alert.ruleId],
      scope: { applications: ["orders"], routes: ["to-erp"] },
      filter: { errorTypes: ["Refused"] },
    },
  });
  expect(values.endsAt).not.toBe("");
});

test("that of a window alert is about its group", () => {
  const count = { groupBy: "ROUTE", group: "to-erp", fireMode: "COUNT_IN_WINDOW" };
  const of = (change: object) => definitionOf(valuesFor({ ...alert, count: { ...count, ...change } } as Alert)).match;
  expect(of({})).toEqual({ rules: [alert.ruleId], scope: { routes: ["to-erp"] } });
  expect(of({ groupBy: "ERROR_TYPE" })).toEqual({ rules: [alert.ruleId], filter: { errorTypes: ["to-erp"] } });
  const customer = { groupBy: "ATTRIBUTE", groupByAttribute: "customer" };
  expect(of({ ...customer, group: "7" })).toEqual({
    rules: [alert.ruleId],
    filter: { attributes: [{ key: "customer", op: "EQUALS", value: "7" }] },
  });
  expect(of({ ...customer, group: "hex:ff" })).toEqual({ rules: [alert.ruleId] });
  expect(of({ ...customer, group: "" })).toEqual({ rules: [alert.ruleId] });
  expect(of({ groupBy: undefined, group: "" })).toEqual({ rules: [alert.ruleId] });
});

test("a silence is described in words", () => {
  expect(matchWords(stored.match, () => "Orders failed")).toBe(
    "rule Orders failed · severity critical · label team = a · application orders · route not probe · status FAILED · " +
      "error Timeout · message does not contain “retry” · at least 100 ms · " +
      'attribute {"key":"customer","op":"AT_LEAST","not":true,"value":"2"}',
  );
  expect(stored.recurrence && recurrenceWords(stored.recurrence)).toBe(
    "Mon, Fri at 22:00 for 1 h 30 min (Europe/Berlin)",
  );
});

test("two edits are compared by what belongs together, and each part is taken from one side", () => {
  const base = valuesOf(stored);
  const theirs = { ...base, reason: "longer", errorTypes: ["Refused"], endsAt: "2026-11-24T12:00:00Z" };
  const mine = { ...base, messageContains: "ERP", endsAt: "2026-11-24T10:00:00.000Z" };
  const found = differences(base, { theirs, mine }, () => "Orders failed");
  expect(found.map(({ field, changedBy }) => [field, changedBy])).toEqual([
    ["reason", "theirs"],
    ["match", "both"],
    ["when", "theirs"],
  ]);
  expect(found[2]?.theirs).toMatch(/^Mon, Fri at 22:00 for 1 h 30 min \(Europe\/Berlin\), from .*, until .*2026/);
  expect(merged({ theirs, mine }, ["match"])).toEqual({
    ...base,
    reason: "longer",
    messageContains: "ERP",
    endsAt: "2026-11-24T12:00:00Z",
  });
});
