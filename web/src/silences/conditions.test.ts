import { expect, test } from "vitest";
import type { AttributeMatch } from "../api/client";
import { conditionLine, parseCondition, parseConditions } from "./conditions";

test.each<[string, AttributeMatch]>([
  ["team = orders", { key: "team", op: "EQUALS", value: "orders" }],
  ["team=orders and more", { key: "team", op: "EQUALS", value: "orders and more" }],
  ["team != orders", { key: "team", op: "EQUALS", not: true, value: "orders" }],
  ["host ~ ^db-\\d+$", { key: "host", op: "MATCHES", value: "^db-\\d+$" }],
  ["host !~ test", { key: "host", op: "MATCHES", not: true, value: "test" }],
  ["tier >= 2", { key: "tier", op: "AT_LEAST", value: "2" }],
  ["tier > 2", { key: "tier", op: "GREATER_THAN", value: "2" }],
  ["tier <= 2", { key: "tier", op: "AT_MOST", value: "2" }],
  ["tier < 2", { key: "tier", op: "LESS_THAN", value: "2" }],
  ["team exists", { key: "team", op: "EXISTS" }],
  ["team not exists", { key: "team", op: "EXISTS", not: true }],
  ["team in a, b c", { key: "team", op: "IN", values: ["a", "b c"] }],
  ["team not in a", { key: "team", op: "IN", not: true, values: ["a"] }],
])("%s", (line, want) => {
  expect(parseCondition(line)).toEqual(want);
  expect(parseCondition(conditionLine(want))).toEqual(want);
});

test.each<AttributeMatch>([
  { key: "a key", op: "EQUALS", value: "x" },
  { key: "k", op: "AT_LEAST", not: true, value: "2" },
  { key: "k", op: "EQUALS", value: " padded " },
  { key: "k", op: "EQUALS", value: "two\nlines" },
  { key: "k", op: "EQUALS", value: "= 2" },
  { key: "k", op: "GREATER_THAN", value: "=2" },
  { key: "k", op: "IN", values: ["a,b", ""] },
  { key: "k", op: "EQUALS", value: "" },
])("what a line cannot say is the API's JSON: %j", (condition) => {
  expect(parseCondition(conditionLine(condition))).toEqual(condition);
  expect(conditionLine(condition)).not.toContain("\n");
});

test("lines that are no conditions are reported", () => {
  expect(parseConditions("team = a\n\n  what is this\n{broken")).toEqual({
    conditions: [{ key: "team", op: "EQUALS", value: "a" }],
    wrong: ["what is this", "{broken"],
  });
});
