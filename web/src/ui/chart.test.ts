import { expect, test } from "vitest";
import { alone, axisTime, chartWords, moved, peakOf, type Series, stepsOf, topOf } from "./chart";

const series = (...values: (number | null)[]): Series => ({ name: "Alerts", values, hue: "--accent" });

test("steps begin where the span does", () => {
  expect(stepsOf({ from: "2026-11-21T13:00:00Z", stepSeconds: 3600 }, 3)).toEqual([1795266000, 1795269600, 1795273200]);
});

test.each([
  ["little does not look like much", series(1, 2), 10, undefined, 10],
  ["a threshold far above is left out", series(4), 1, 30, 4],
  ["a threshold that is near is shown", series(20), 1, 30, 33],
  ["a threshold that is passed needs no more room", series(50), 1, 30, 50],
])("%s", (_, one, least, threshold, want) => {
  expect(topOf([one], least, threshold)).toBeCloseTo(want);
});

test("what is not known is no zero", () => {
  expect(peakOf(series(null, null))).toBeUndefined();
  expect(chartWords([series(null, 3, 1, null)], String)).toBe("Alerts: peak 3, latest 1");
  expect(chartWords([series(null)], String)).toBe("Alerts: no data");
});

test("the arrows begin at the end and stay within", () => {
  expect([moved(undefined, "ArrowLeft", 3), moved(2, "ArrowLeft", 3), moved(0, "ArrowLeft", 3)]).toEqual([2, 1, 0]);
  expect([moved(2, "ArrowRight", 3), moved(1, "Home", 3), moved(0, "End", 3), moved(1, "a", 3)]).toEqual([2, 0, 2, 1]);
  expect(moved(undefined, "ArrowLeft", 0)).toBeUndefined();
});

test("an axis of days says days, another one times", () => {
  expect(axisTime(1795266000, 86_400)).toBe("21 Nov");
  expect(axisTime(1795266000, 3600)).toMatch(/^\d\d:00$/);
});

test("a value between gaps is found, one with a neighbour is not", () => {
  expect(alone([1, null, 2, 3, null, 4])).toEqual([0, 5]);
  expect(alone([])).toEqual([]);
});
