import { describe, expect, test } from "vitest";
import type { Alert } from "../api/client";
import { arrivals, canBecome, step, successor, withPinned } from "./rows";

const alert = (id: string, firedAt: string, state: Alert["state"] = "FIRING") => ({ id, firedAt, state }) as Alert;
const at = (second: number, fraction = "") => `2026-11-21T10:00:${String(second).padStart(2, "0")}${fraction}Z`;

describe("withPinned", () => {
  const rows = [alert("c", at(3)), alert("b", at(2, ".5")), alert("a", at(1))];
  const ids = (list: readonly Alert[]) => list.map((row) => row.id).join("");

  test.each([
    ["none", undefined, "cba"],
    ["one that is listed", alert("b", at(2)), "cba"],
    ["the newest", alert("x", at(4)), "xcba"],
    ["one in between, by instant and not by text", alert("x", at(2, ".25")), "cbxa"],
    ["the oldest", alert("x", at(0)), "cbax"],
    ["one of the same instant and a greater id", alert("x", at(1)), "cbxa"],
    ["one of the same instant and a smaller id", alert("0", at(1)), "cba0"],
  ])("%s", (_, pinned, want) => {
    expect(ids(withPinned(rows, pinned))).toBe(want);
  });
});

test.each([
  ["nothing before is no news", "", "ab", ""],
  ["two above", "ab", "yxab", "yx"],
  ["one above, and one gone", "abc", "xbc", "x"],
  ["older ones loaded below", "ab", "abcd", ""],
  ["nothing in common", "ab", "xy", ""],
])("arrivals: %s", (_, before, now, want) => {
  expect(arrivals([...before], [...now]).join("")).toBe(want);
});

test.each([
  ["abc", "a", 1, "b"],
  ["abc", "c", 1, "c"],
  ["abc", "a", -1, "a"],
  ["abc", undefined, 1, "a"],
  ["abc", "gone", -1, "a"],
  ["", undefined, 1, undefined],
] as const)("step in %j from %s by %d leads to %s", (ids, from, by, want) => {
  expect(step([...ids], from, by)).toBe(want);
});

test("a step from nowhere begins where somebody looks", () => {
  expect(step(["a", "b", "c"], undefined, 1, "b")).toBe("b");
  expect(step(["a", "b", "c"], "a", 1, "c")).toBe("b");
});

test.each([
  ["abc", "b", "c"],
  ["abc", "c", "b"],
  ["a", "a", undefined],
])("in %j, %s is followed by %s", (ids, leaving, want) => {
  expect(successor([...ids], leaving)).toBe(want);
});

test("an alert only moves on", () => {
  const can = (from: Alert["state"], to: Alert["state"]) => canBecome(alert("a", at(1), from), to);
  expect(can("FIRING", "ACKNOWLEDGED")).toBe(true);
  expect(can("FIRING", "RESOLVED")).toBe(true);
  expect(can("ACKNOWLEDGED", "RESOLVED")).toBe(true);
  expect(can("ACKNOWLEDGED", "ACKNOWLEDGED")).toBe(false);
  expect(can("RESOLVED", "ACKNOWLEDGED")).toBe(false);
});
