import { describe, expect, test } from "vitest";
import type { AlertGroup, Rule } from "../api/client";
import { downTo, type Facts, found, nextSort, parseRulesSearch, type SortKey, sorted } from "./list";

const rule = (id: string, name: string, rest: Partial<Rule> = {}) =>
  ({ id, name, severity: "INFO", enabled: true, ...rest }) as Rule;
const rules = [
  rule("1", "Orders", { severity: "WARNING", health: { lagSeconds: 9 } as NonNullable<Rule["health"]> }),
  rule("2", "billing", { severity: "CRITICAL", enabled: false }),
  rule("3", "Customs", { health: { lastError: "away" } as NonNullable<Rule["health"]> }),
];
const facts: Facts = {
  open: new Map([["2", { firing: 3, acknowledged: 1 } as AlertGroup]]),
  raised: new Map([["3", [1, 0, 4]]]),
  said: ({ id }) => `Whenever something of ${id} fails in Production, notify #ops once.`,
};
const names = (list: readonly Rule[]) => list.map(({ name }) => name);

test.each([
  ["", ["Orders", "billing", "Customs"]],
  ["  ", ["Orders", "billing", "Customs"]],
  ["ord", ["Orders"]],
  ["production #ops cust", ["Customs"]],
  ["of 2", ["billing"]],
  ["nothing", []],
])("“%s” finds by name and sentence", (q, want) => {
  expect(names(found(rules, q, facts))).toEqual(want);
});

test.each<[SortKey, boolean, string[]]>([
  ["name", false, ["billing", "Customs", "Orders"]],
  ["name", true, ["Orders", "Customs", "billing"]],
  ["severity", false, ["billing", "Orders", "Customs"]],
  ["open", false, ["billing", "Customs", "Orders"]],
  ["open", true, ["Customs", "Orders", "billing"]],
  ["hour", false, ["Customs", "billing", "Orders"]],
  ["lag", false, ["Customs", "Orders", "billing"]],
])("sorted by %s, reversed %s", (by, reverse, want) => {
  expect(names(sorted(rules, by, reverse, facts))).toEqual(want);
});

describe("the address", () => {
  test("leaves out what makes no sense", () => {
    expect(parseRulesSearch({ q: "", sort: "colour", reverse: "no", x: 1 })).toEqual({});
    expect(parseRulesSearch({ q: "a", sort: "lag", reverse: "yes" })).toEqual({ q: "a", sort: "lag", reverse: "yes" });
  });
  test("turns round with the second press, and starts again in another column", () => {
    const once = nextSort({ q: "a" }, "open");
    const twice = nextSort(once, "open");
    expect([once, twice, nextSort(twice, "lag"), nextSort(twice, "open"), nextSort({}, "name")]).toEqual([
      { q: "a", sort: "open" },
      { q: "a", sort: "open", reverse: "yes" },
      { q: "a", sort: "lag" },
      { q: "a", sort: "open" },
      { reverse: "yes" },
    ]);
  });
});

test.each([
  ["none", "", 100],
  ["an unknown one", "r-1", 100],
  ["one of the first", "r5", 100],
  ["a later one", "r120", 121],
  ["one that is too far", "r1500", 100],
])("the list is shown as far as the rule that the address names: %s", (_, named, shown) => {
  const rules = Array.from({ length: 2_000 }, (__, at) => ({ id: `r${at}` }));
  expect(downTo(rules, 100, named)).toBe(shown);
});
