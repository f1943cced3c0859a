import { describe, expect, test } from "vitest";
import type { Alert, AlertGroup } from "../api/client";
import { wide } from "./filter";
import { alertRows, type Row } from "./fold";
import { extend, isSelected, nothing, order, present, type Selection, toggle } from "./selection";

const alerts = (ids: string) => alertRows([...ids].map((id) => ({ id }) as Alert));
const rows = alerts("abcde");
const ids = ({ ids }: Selection) => [...ids].sort().join("");
const filter = { ...wide("FIRING"), q: "x" };
const known = { filter, asOf: "T", total: 37 };

describe("selecting", () => {
  test("takes in and out", () => {
    const one = toggle(nothing, rows, "b");
    expect(ids(one)).toBe("b");
    expect(ids(toggle(one, rows, "b"))).toBe("");
  });

  test.each([
    ["downwards", "b", "d", "bcd"],
    ["upwards", "d", "b", "bcd"],
    ["where the beginning is gone, one", "z", "c", "c"],
  ])("a range %s", (_, from, to, want) => {
    expect(ids(extend({ ...nothing, anchor: from }, rows, to))).toBe(want);
  });

  test("one is taken out of everything", () => {
    const all = { ...nothing, all: true };
    expect(isSelected(all, "not loaded")).toBe(true);
    const rest = toggle(all, rows, "c");
    expect([rest.all, ids(rest)]).toEqual([false, "abde"]);
  });

  test("what has left the list is not selected any more", () => {
    const two = toggle(toggle(nothing, rows, "a"), rows, "b");
    expect(ids(present(two, alerts("bcd")))).toBe("b");
    expect(present(two, rows)).toBe(two);
  });
});

describe("an order", () => {
  test("for everything is the filter, up to what was seen", () => {
    const { parts, count } = order({ ...nothing, all: true }, rows, known);
    expect(count).toBe(37);
    expect(parts).toEqual([
      {
        filter: {
          ...{ state: ["FIRING"], severity: [], assignee: [], application: [], ruleId: [], signature: [], q: "x" },
          ...{ route: [], environment: [], attribute: [] },
        },
        upTo: "T",
      },
    ]);
  });

  test("for rows names them", () => {
    const two = toggle(toggle(nothing, rows, "d"), rows, "a");
    expect(order(two, rows, known)).toEqual({ parts: [{ ids: ["a", "d"] }], count: 2 });
  });

  test("takes no more ids at once than the API does", () => {
    const many = alertRows(Array.from({ length: 2001 }, (_, at) => ({ id: `${at}` }) as Alert));
    const selection = extend({ ...nothing, anchor: "0" }, many, "2000");
    expect(order(selection, many, known).parts.map((part) => part.ids?.length)).toEqual([1000, 1000, 1]);
  });

  test("for a group is the group's filter, and its alerts are not counted twice", () => {
    const group = { signature: "E", count: 9 } as AlertGroup;
    const folded: readonly Row[] = [
      { kind: "group", id: "g", group, open: true },
      { kind: "alert", id: "g1", alert: { id: "g1" } as Alert, nested: true },
      { kind: "alert", id: "h", alert: { id: "h" } as Alert, nested: false },
    ];
    const { parts, count } = order({ ...nothing, ids: new Set(["g", "g1", "h"]) }, folded, known);
    expect(count).toBe(10);
    expect(parts).toMatchObject([{ filter: { signature: ["E"], q: "x" }, upTo: "T" }, { ids: ["h"] }]);
  });
});
