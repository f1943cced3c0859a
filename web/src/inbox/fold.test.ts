import { describe, expect, test } from "vitest";
import type { Alert, AlertGroup } from "../api/client";
import { wide } from "./filter";
import { groupId, groupRows, groupTitle, rowOf, withinGroup } from "./fold";

const alert = (id: string) => ({ id }) as Alert;
const group = (signature: string, count: number, unread = 0) =>
  ({ signature, count, unread, newest: alert(`${signature}1`) }) as AlertGroup;
const byRule = { ruleId: "r", ruleName: "Failed orders", count: 2, newest: alert("r1") } as AlertGroup;

describe("groupRows", () => {
  const e = group("E", 3);
  const lines = (opened: ReadonlyMap<string, readonly Alert[] | undefined | null>) =>
    groupRows([e, group("F", 1, 1)], opened).map((row) => `${row.kind} ${row.id}`);

  test.each([
    ["a closed group is one line, a group of one its alert", new Map(), ["group signature E", "alert F1"]],
    [
      "an opened one that is on its way says so",
      new Map([["signature E", undefined]]),
      ["group signature E", "rest signature E rest", "alert F1"],
    ],
    [
      "an opened one has its alerts below it",
      new Map([["signature E", ["E1", "E2", "E3"].map(alert)]]),
      ["group signature E", "alert E1", "alert E2", "alert E3", "alert F1"],
    ],
    [
      "what is too much is mentioned",
      new Map([["signature E", [alert("E1")]]]),
      ["group signature E", "alert E1", "rest signature E rest", "alert F1"],
    ],
  ])("%s", (_, opened, want) => {
    expect(lines(opened)).toEqual(want);
  });

  test("an opened issue ends with the way to its page", () => {
    const issue = { ...e, application: "orders", route: "import", count: 1 + 1 };
    const rows = groupRows([issue], new Map([[groupId(issue), [alert("E1"), alert("E2")]]]));
    expect(rows.at(-1)).toMatchObject({ kind: "rest", state: "all" });
  });

  test("says whether a group could not be read", () => {
    const states = [undefined, null].map((content) => groupRows([e], new Map([[groupId(e), content]]))[1]);
    expect(states).toMatchObject([{ state: "loading" }, { state: "failed" }]);
  });

  test("a row whose group has not changed is the same row, so that it is not drawn again", () => {
    const groups = [e, group("F", 1)];
    const below = ["E1", "E2", "E3"].map(alert);
    const known = new WeakMap();
    const rows = (open: boolean) => groupRows(groups, new Map(open ? [["signature E", below]] : []), known);
    const same = (open: boolean) => rows(open).map((row, at) => row === rows(open)[at]);
    expect(same(false)).toEqual([true, true]);
    expect(rows(true)[0]).toMatchObject({ open: true });
    expect(same(true)).toEqual([true, true, true, true, true]);
    expect(rows(false)[0]).toMatchObject({ open: false });
  });

  test("a group of one is as unread as the group", () => {
    expect(groupRows([group("F", 1, 1)], new Map())[0]).toMatchObject({ alert: { unread: true } });
  });
});

test("a group is named, and narrows the filter, by what its alerts share", () => {
  expect([groupTitle(byRule), groupTitle(group("E: x", 2)), groupTitle(group("", 2))]).toEqual([
    "Failed orders",
    "E: x",
    "No error",
  ]);
  expect(withinGroup(wide("FIRING"), byRule)).toEqual({ ...wide("FIRING"), ruleId: ["r"] });
  expect(withinGroup({ ...wide("FIRING"), q: "x" }, group("", 2))).toEqual({
    ...wide("FIRING"),
    q: "x",
    signature: [""],
  });
  // Without the alerts of window rules whose newest exchange failed there in the same way: they
  // have their own rows.
  expect(withinGroup(wide("FIRING"), { ...group("E", 2), application: "orders", route: "import" })).toEqual({
    ...wide("FIRING"),
    application: ["orders"],
    route: ["import"],
    signature: ["E"],
    perExchange: true,
  });
});

describe("an alert stands in", () => {
  const exchange = { application: "orders", route: "import" } as NonNullable<Alert["exchange"]>;
  const one = { id: "x", ruleId: "r", signature: "E", exchange };
  const issue = (application: string, signature: string) => ({ ...group(signature, 3), application, route: "import" });
  const rows = groupRows([issue("billing", "E"), issue("orders", "F"), issue("orders", "E")], new Map());

  test.each([
    ["the row of its issue", rows, one, rows[2]?.id],
    [
      "its own row, where that is open",
      [...rows, ...groupRows([group("x", 1)], new Map())],
      { ...one, id: "x1" },
      "x1",
    ],
    ["the row of its rule", groupRows([byRule], new Map()), one, "rule r"],
    ["the row of its error", groupRows([group("E", 2)], new Map()), one, "signature E"],
    ["none, where it is of another place", rows.slice(0, 2), one, undefined],
    ["none, where nothing is known of its error", rows, { id: "x", ruleId: "q", exchange }, undefined],
  ])("%s", (_, among, alert, want) => {
    expect(rowOf(among, alert)?.id).toBe(want);
  });
});
