import { expect, test } from "vitest";
import { parseExplain, partWords } from "./explain";

test.each([
  [{}, {}],
  [{ executionId: "" }, {}],
  [{ executionId: ["a", "b"] }, {}],
  [{ executionId: "a", hours: "0" }, { executionId: "a" }],
  [
    { executionId: "a/b", startTime: "2026-11-21T07:02:00.123456789Z", hours: "48" },
    { executionId: "a/b", startTime: "2026-11-21T07:02:00.123456789Z", hours: 48 },
  ],
])("the address %j asks %j", (search, want) => {
  expect(parseExplain(search)).toEqual(want);
});

test.each([
  ["scope.notRoutes", "excluded route"],
  ["filter.statuses", "status"],
  ["filter.errorMessageNotMatches[0]", "excluded expression for the error message"],
  ["filter.attributes[1]", "attribute 2"],
  ["something.new", "something.new"],
])("%s reads %s", (field, words) => {
  expect(partWords(field)).toBe(words);
});
