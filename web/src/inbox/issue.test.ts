import { expect, test } from "vitest";
import type { Issue } from "../api/client";
import { issueKey, issueSearch, parseIssueSearch, statesOf } from "./issue";

test.each([
  ["all three parts", { application: "orders", route: "import", signature: "T: refused" }],
  ["no error", { application: "orders", route: "import", signature: "" }],
  ["an error that is called none", { application: "orders", route: "import", signature: "none" }],
  ["no names", { application: "", route: "", signature: "T" }],
])("an address names an issue with %s", (_, key) => {
  expect(issueKey(parseIssueSearch({ ...issueSearch(key) }))).toEqual(key);
});

test("an address without an error names no issue", () => {
  expect(issueKey(parseIssueSearch({ app: "orders", route: ["a", "b"], error: 7 }))).toBeUndefined();
});

test("states without alerts are left out", () => {
  expect(statesOf({ firing: 1200, acknowledged: 0, resolved: 1 } as Issue)).toBe("1,200 firing, 1 resolved");
});
