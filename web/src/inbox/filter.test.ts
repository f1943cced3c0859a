import { expect, test } from "vitest";
import { parseAddress, writeAddress } from "../app/search";
import { isNarrowed, parseSearch, toFilter, toSearch } from "./filter";

const read = (address: string) => toFilter(parseSearch(parseAddress(address)));

test.each([
  ["", { state: "FIRING", severity: [], application: [], ruleId: [], q: "" }],
  [
    "?state=resolved&severity=info&severity=critical&app=a&app=b&rule=1&q=x%20y",
    { state: "RESOLVED", severity: ["CRITICAL", "INFO"], application: ["a", "b"], ruleId: ["1"], q: "x y" },
  ],
  ["?state=burning&severity=fatal&q=&app=", { state: "FIRING", severity: [], application: [], ruleId: [], q: "" }],
  ["?state=pending", { state: "PENDING", severity: [], application: [], ruleId: [], q: "" }],
  ["?state=FIRING&app=a&app=a", { state: "FIRING", severity: [], application: ["a"], ruleId: [], q: "" }],
])("the address %j is read", (address, want) => {
  expect(read(address)).toEqual(want);
});

test("what is written is read back", () => {
  const filter = {
    state: "ACKNOWLEDGED",
    severity: ["WARNING"],
    application: ["a&b", "100 %", "true", "7"],
    ruleId: ["r"],
    q: '"quoted" + ümlaut',
  } as const;
  expect(read(writeAddress({ ...toSearch(filter) }))).toEqual(filter);
});

test("the default filter leaves the address bare", () => {
  expect(writeAddress({ ...toSearch(read("")) })).toBe("");
});

test("a text that is too long for the API is cut", () => {
  expect(read(`?q=${"x".repeat(500)}`).q).toHaveLength(200);
});

test("the state alone does not narrow", () => {
  expect(isNarrowed(read("?state=resolved"))).toBe(false);
  expect(isNarrowed(read("?q=x"))).toBe(true);
});
