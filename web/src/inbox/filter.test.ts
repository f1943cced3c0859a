import { expect, test } from "vitest";
import { parseAddress, writeAddress } from "../ui/address";
import { isNarrowed, parseSearch, toFilter, toFold, toSearch, twoValues, wide } from "./filter";

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
  ["?snoozed=yes", { snoozed: "yes" }],
  ["?snoozed=any", {}],
  ["?assignee=none&assignee=ada%40example.com", { assignee: ["", "ada@example.com"] }],
  [
    "?attr=region&attr==eu&attr=a=b&within=never&from=yesterday&to=2026-11-21",
    { attribute: ["a=b"], to: "2026-11-21T00:00:00.000Z" },
  ],
  [
    "?env=production&execution=ID-1&correlation=c&within=7d",
    { environment: ["production"], executionId: "ID-1", correlationId: "c", hours: 168 },
  ],
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
    assignee: ["", "none", "ada@example.com"],
    snoozed: "no",
    unread: true,
    perExchange: true,
    route: ["a/b"],
    environment: ["production"],
    executionId: "ID-1&2",
    correlationId: "c=1",
    attribute: ["region=eu", "note=a=b"],
    hours: 24,
    from: "2026-11-21T10:00:00.000Z",
    to: "2026-11-22T10:00:00.000Z",
  } as const;
  expect(read(writeAddress({ ...toSearch(filter) }))).toEqual(filter);
});

test.each(["issue", "rule", "signature", "none"] as const)("folding by %s is written and read back", (fold) => {
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

test("two values of one attribute exclude each other", () => {
  expect(twoValues([])).toBeUndefined();
  expect(twoValues(["region=eu", "team=a", "region=eu"])).toBeUndefined();
  expect(twoValues(["region=eu", "team=a", "region=us"])).toBe("region");
  expect(twoValues(["a=b=c", "a=b"])).toBe("a");
});
