import { expect, test } from "vitest";
import type { Reconciliation, Rule } from "../api/client";
import { byTrouble, comparison } from "./rules";

const rule = (name: string, enabled: boolean, health: Rule["health"] = {}) => ({ name, enabled, health }) as Rule;

test("what fails comes first, then what is farthest behind, and what is off last", () => {
  const rules = [
    rule("off", false),
    rule("quick", true, { lagSeconds: 1 }),
    rule("unknown", true),
    rule("slow", true, { lagSeconds: 40 }),
    rule("b fails", true, { lastError: "x" }),
    rule("a fails", true, { lastError: "x" }),
  ];
  expect(byTrouble(rules).map(({ name }) => name)).toEqual(["a fails", "b fails", "slow", "quick", "unknown", "off"]);
});

test.each([
  [{}, "37 of 37 matching exchanges have an alert; none is missing."],
  [
    { alerted: 35, missing: 2, missingSample: ["x-1"] },
    "35 of 37 matching exchanges have an alert; 2 missing: x-1, ….",
  ],
  [
    { lateDropped: 1, unexpected: 1200 },
    "37 of 37 matching exchanges have an alert; none is missing; 1 became visible beyond the look-back; 1,200 alerts whose exchange no longer matches.",
  ],
])("a comparison %j is described", (change, want) => {
  const clean = { matching: 37, alerted: 37, missing: 0, missingSample: [], lateDropped: 0, unexpected: 0 };
  expect(comparison({ ...clean, ...change } as unknown as Reconciliation)).toBe(want);
});

test.each([
  [{}, "3 of 3 threshold crossings have an alert; none is missing."],
  [
    { alerted: 2, missing: 1, missingSample: ['"eu"'], unexpected: 1, different: 2, late: 1, lateBySeconds: 3.2 },
    '2 of 3 threshold crossings have an alert; 1 missing: "eu"; 1 unexpected; 2 with a count that differs from the table; 1 without exchanges that arrived up to 4 s late.',
  ],
  [
    {
      findings: [
        { kind: "UNCHECKED", why: "the rule was edited" },
        { kind: "LATE", why: "late" },
      ],
    },
    "3 of 3 threshold crossings have an alert; none is missing; not checked: the rule was edited.",
  ],
])("a comparison of windows %j is described", (change, want) => {
  const clean = { matching: 3, alerted: 3, missing: 0, missingSample: [], lateDropped: 0, unexpected: 0 };
  expect(comparison({ ...clean, ...change } as unknown as Reconciliation, "COUNT_IN_WINDOW")).toBe(want);
});
