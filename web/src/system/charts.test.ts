import { expect, test } from "vitest";
import { evaluatedUntil, seriesOf, slowestOf } from "./charts";

test("a step without a sample is no zero", () => {
  const steps = [{}, { messages: 0 }, { messages: 7, lagSeconds: 1 }];
  expect(seriesOf(steps, "Messages", "--accent", ({ messages }) => messages).values).toEqual([null, 0, 7]);
});

test("the slowest partition is one that has been evaluated", () => {
  expect(slowestOf([{ partition: 1 }, { partition: 2, lagSeconds: 3 }, { partition: 3, lagSeconds: 9 }])).toMatchObject(
    {
      partition: 3,
    },
  );
  expect(slowestOf([{ partition: 1 }])).toBeUndefined();
});

test.each([
  ["2026-11-21T10:00:00.123456789Z|ID|7", "2026-11-21T10:00:00.123456789Z"],
  ["2026-11-21T10:00:00Z|", "2026-11-21T10:00:00Z"],
  ["broken", undefined],
  [undefined, undefined],
])("a cursor %s has come to %s", (cursor, want) => {
  expect(evaluatedUntil(cursor)).toBe(want);
});
