import { expect, test } from "vitest";
import { countOf, tabsOf } from "./tabs";

const counts = {
  pending: 0,
  retrying: 12,
  delivered: 10_000,
  failed: 1234,
  exhausted: 0,
  discarded: 0,
  suppressed: 0,
  complete: true,
};

test.each([
  ["FAILED", counts, {}, "1,234"],
  ["DELIVERED", counts, {}, "10,000+"],
  ["PENDING", undefined, {}, ""],
  ["DELIVERED", { ...counts, delivered: 12, complete: false }, {}, "12+"],
  ["DELIVERED", { ...counts, delivered: 0, complete: false }, {}, ""],
  ["FAILED", { ...counts, complete: false }, {}, "1,234"],
  ["FAILED", counts, { q: "x" }, ""],
  ["FAILED", counts, { rule: ["r"] }, ""],
  ["FAILED", counts, { webhook: ["w"], within: "1h" }, "1,234"],
] as const)("%s of %j with %j is “%s”", (status, known, search, want) => {
  expect(countOf(status, known, JSON.parse(JSON.stringify(search)))).toBe(want);
});

test("a tab keeps the other filters, and a status without messages has one only when it is chosen", () => {
  const tabs = tabsOf({ status: ["failed"], q: "x" }, counts);
  expect(tabs.map(({ status }) => status)).not.toContain("DISCARDED");
  expect(tabs.find(({ status }) => status === "RETRYING")?.search).toEqual({ status: ["retrying"], q: "x" });
  expect(tabs.filter(({ current }) => current).map(({ status }) => status)).toEqual(["FAILED"]);
  expect(tabsOf({ status: ["discarded"] }, counts).at(-1)?.status).toBe("DISCARDED");
});

test("a tab stays that may have messages which were not counted", () => {
  const shown = (complete: boolean) => tabsOf({}, { ...counts, complete }).map(({ status }) => status);
  expect(shown(true)).not.toContain("SUPPRESSED");
  expect(shown(false)).toContain("SUPPRESSED");
});
