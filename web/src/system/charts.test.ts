import { expect, test } from "vitest";
import { number } from "../ui/words";
import { judgedUntil, peak } from "./charts";

test("the highest of what is known is told", () => {
  expect(peak([3, undefined, 1200], number)).toBe("at most 1,200");
  expect(peak([0], number)).toBe("at most 0");
  expect(peak([undefined], number)).toBe("no data yet");
});

test.each([
  ["2026-11-21T10:00:00.123456789Z|ID|7", "2026-11-21T10:00:00.123456789Z"],
  ["2026-11-21T10:00:00Z|", "2026-11-21T10:00:00Z"],
  ["broken", undefined],
  [undefined, undefined],
])("a cursor %s has come to %s", (cursor, want) => {
  expect(judgedUntil(cursor)).toBe(want);
});
