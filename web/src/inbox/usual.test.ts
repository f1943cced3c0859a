import { expect, test } from "vitest";
import { usualBar } from "./usual";

test.each([
  ["100", "100", "200", "as usual"],
  ["200", "100", "200", "as usual"],
  ["201", "150", "200", "longer than usual"],
  ["250", "100", "200", "2.5 times as long as usual"],
  ["30000", "100", "200", "300 times as long as usual"],
  ["30", "100", "200", "shorter than usual"],
  ["5", "0", "4", "5.0 times as long as usual"],
])("%s ns beside a median of %s and 95 % within %s is %s", (took, median, p95, words) => {
  const bar = usualBar(took, median, p95);
  expect(bar?.words).toBe(words);
  for (const part of [bar?.took, bar?.median, bar?.p95]) {
    expect(part).toBeGreaterThanOrEqual(0);
    expect(part).toBeLessThan(1);
  }
});

test.each([
  ["100", undefined, undefined],
  ["-1", "100", "200"],
  ["100", "0", "0"],
])("of %s, %s and %s there is no bar", (took, median, p95) => expect(usualBar(took, median, p95)).toBeUndefined());
