import { expect, test } from "vitest";
import { differences, merged, usualSide } from "./conflict";
import { initialValues, same, type Values } from "./definition";

const change = (edit: (values: Values) => void) => {
  const values = structuredClone(initialValues);
  edit(values);
  return values;
};
const base = change((v) => {
  v.name = "Orders";
});
const names = (id: string) => `#${id}`;

test("each field that differs is told once, with who changed it", () => {
  const theirs = change((v) => {
    v.name = "Failed orders";
    v.severity = "WARNING";
    v.webhookIds = ["ops"];
    v.filter.minDurationMs = 500;
  });
  const mine = change((v) => {
    v.name = "Orders that fail";
    v.filter.attributes = [{ key: "customer", op: "EQUALS", value: "ACME" }];
    v.filter.minDurationMs = 500;
  });
  expect(differences(base, { theirs, mine }, names)).toEqual([
    { field: "name", label: "Name", theirs: "Failed orders", mine: "Orders that fail", changedBy: "both" },
    { field: "filter.attributes", label: "Attributes", theirs: "–", mine: "customer EQUALS ACME", changedBy: "mine" },
    { field: "severity", label: "Severity", theirs: "WARNING", mine: "CRITICAL", changedBy: "theirs" },
    { field: "webhookIds", label: "Webhooks", theirs: "#ops", mine: "–", changedBy: "theirs" },
  ]);
});

test("what does not apply to the fire mode of a side is absent there", () => {
  const mine = change((v) => {
    v.name = "Orders";
    v.fireMode = "COUNT_IN_WINDOW";
  });
  const found = differences(base, { theirs: base, mine }, names);
  expect(found.map(({ label, theirs, mine: own }) => [label, theirs, own])).toEqual([
    ["Alert on", "PER_EXCHANGE", "COUNT_IN_WINDOW"],
    ["Threshold", "–", "5"],
    ["Window", "–", "10 min"],
    ["Tell when it is over", "–", "yes"],
    ["Look back", "1 h", "–"],
  ]);
});

test("both sides are kept where only one changed a field, and a choice overrules that", () => {
  const theirs = change((v) => {
    v.name = "Orders";
    v.severity = "WARNING";
  });
  const mine = change((v) => {
    v.name = "Orders";
    v.scope.routes = ["order-*"];
  });
  const sides = { theirs, mine };
  const usual = differences(base, sides, names).filter((d) => usualSide(d) === "mine");
  const both = merged(
    sides,
    usual.map((d) => d.field),
  );
  expect([both.severity, both.scope.routes]).toEqual(["WARNING", ["order-*"]]);
  expect(same(merged(sides, []), theirs)).toBe(true);
  expect(same(merged(sides, ["severity", "scope.routes"]), mine)).toBe(true);
});
