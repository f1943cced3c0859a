import { expect, test } from "vitest";
import { parseAddress, writeAddress } from "../app/search";
import { isNarrowed, parseSearch, toFilter, toFold, toSearch, wide } from "./filter";

const read = (address: string) => toFilter(parseSearch(parseAddress(address)));

test.each([
  ["", {}],
  [
    "?state=resolved&severity=info&severity=critical&app=a&app=b&rule=1&q=x%20y",
    { state: "RESOLVED", severity: ["CRITICAL", "INFO"], application: ["a", "b"], ruleId: ["1"], q: "x y" },
  ],
  ["?state=burning&severity=fatal&q=&app=", {}],
  ["?state=pending", { state: "PENDING" }],
  ["?state=FIRING&app=a&app=a", { application: ["a"] }],
  ["?mine=yes&unread=yes&error=none&error=x", { mine: true, unread: true, signature: ["", "x"] }],
  ["?mine=1&unread=no", {}],
])("the address %j is read", (address, want) => {
  expect(read(address)).toEqual({ ...wide("FIRING"), ...want });
});

test("what is written is read back", () => {
  const filter = {
    state: "ACKNOWLEDGED",
    severity: ["WARNING"],
    application: ["a&b", "100 %", "true", "7"],
    ruleId: ["r"],
    signature: ["", "none", "~none", "~~none", "~other", "E: x"],
    q: '"quoted" + ümlaut',
    mine: true,
    unread: true,
  } as const;
  expect(read(writeAddress({ ...toSearch(filter) }))).toEqual(filter);
});

test.each(["rule", "signature", undefined] as const)("folding by %s is written and read back", (fold) => {
  expect(toFold(parseSearch(parseAddress(writeAddress({ ...toSearch(wide("FIRING"), fold) }))))).toBe(fold);
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
