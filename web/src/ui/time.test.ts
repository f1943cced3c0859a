import { afterEach, describe, expect, test } from "vitest";
import {
  ago,
  between,
  clockTime,
  dayHours,
  duration,
  exactTime,
  fieldInstant,
  fieldTime,
  fraction,
  hourTime,
  lag,
  minuteTime,
  period,
  secondTime,
  shortTime,
  span,
  timeZone,
  took,
} from "./time";

afterEach(() => {
  timeZone.set("local");
  dayHours.set("24");
});

test("times are said in the zone and with the clock that the reader has chosen", () => {
  const at = "2026-11-21T14:02:07.113456789Z";
  const now = Date.parse("2026-11-21T23:00:00Z");
  const tomorrow = Date.parse("2026-11-22T00:30:00Z");
  timeZone.set("utc");
  expect([shortTime(at, now), secondTime(at, now), minuteTime(at, now)]).toEqual(["14:02:07.113", "14:02:07", "14:02"]);
  expect(minuteTime(at, tomorrow)).toBe("21 Nov 14:02");
  expect(shortTime(at, Date.parse("2027-06-01T00:00:00Z"))).toBe("21 Nov 2026 14:02:07.113");
  expect(exactTime(at)).toBe("21 Nov 2026, 14:02:07.113456789 UTC");
  dayHours.set("12");
  expect([clockTime(at), hourTime(new Date(at))]).toEqual(["02:02:07.113 pm", "02:02 pm"]);
  expect(exactTime("2026-11-21T00:00:00Z")).toBe("21 Nov 2026, 12:00:00 am UTC");
});

test("a field shows and means instants in the zone that the reader has chosen", () => {
  const local = new Date(2026, 2, 9, 7, 5).toISOString();
  expect([fieldTime(local), fieldInstant("2026-03-09T07:05")]).toEqual(["2026-03-09T07:05", local]);
  timeZone.set("utc");
  expect(fieldTime("2026-03-09T23:05:59.9Z")).toBe("2026-03-09T23:05");
  expect(fieldInstant("2026-03-09T23:05")).toBe("2026-03-09T23:05:00.000Z");
  expect([fieldTime(""), fieldTime("soon"), fieldInstant(""), fieldInstant("soon")]).toEqual(["", "", "", ""]);
});

test("digits below the millisecond survive", () => {
  const at = "2026-11-21T14:02:07.113456789Z";
  expect(fraction(at)).toBe("113456789");
  expect(clockTime(at)).toMatch(/^\d\d:\d\d:07\.113$/);
  expect(exactTime(at)).toMatch(/^\d+ \w+ 2026, \d\d:\d\d:07\.113456789 /);
  expect(clockTime("2026-11-21T14:02:07Z")).toMatch(/:07\.000$/);
});

test.each([
  [84, "84 ms"],
  [0.659, "659 µs"],
  [0, "less than 1 ms"],
])("an attempt of %d ms took %s", (ms, want) => {
  expect(took(ms)).toBe(want);
});

test("how long it is from one instant to another, for whatever the clocks say", () => {
  expect(between("2026-11-21T14:02:07.100Z", "2026-11-21T14:02:07.184999Z")).toBe("84 ms");
  expect(between("2026-11-21T14:02:07Z", "2026-11-21T14:04:12Z")).toBe("2 min 5 s");
  expect(between("2026-11-21T14:02:08Z", "2026-11-21T14:02:07Z")).toBe("less than 1 ms");
});

test.each([
  ["0", "0 ns"],
  ["999", "999 ns"],
  ["1500", "1.5 µs"],
  ["12345678", "12.3 ms"],
  ["999999999", "999 ms"],
  ["1250000000", "1.25 s"],
  ["30000000000", "30 s"],
  ["125000000000", "2 min 5 s"],
  ["9007199254740993000000000", "2501999792983 h 36 min"],
  ["-1500", "−1.5 µs"],
  ["odd", "odd"],
])("%s ns is %s", (ns, want) => {
  expect(duration(ns)).toBe(want);
});

test("a duration of three digits reads as it was given", () => {
  const hundredths = Array.from({ length: 900 }, (_, index) => 100 + index);
  for (const [unit, of] of [
    ["µs", 10],
    ["ms", 10_000],
    ["s", 10_000_000],
  ] as const) {
    expect(hundredths.map((n) => duration(String(n * of)))).toEqual(hundredths.map((n) => `${n / 100} ${unit}`));
  }
});

test.each([
  [0.4, "0 s"],
  [59.9, "59 s"],
  [60, "1 min"],
  [7199, "1 h"],
  [90_000, "1 d"],
])("%d seconds span %s", (seconds, want) => {
  expect(span(seconds)).toBe(want);
});

test.each([
  [0, "0 s"],
  [45, "45 s"],
  [90, "1 min 30 s"],
  [600, "10 min"],
  [5400, "1 h 30 min"],
  [86_400, "24 h"],
])("a period of %d s is %s", (seconds, want) => {
  expect(period(seconds)).toBe(want);
});

describe("relative times", () => {
  const now = Date.parse("2026-11-21T14:00:00Z");
  test.each([
    ["2026-11-21T13:59:59.500Z", "now"],
    ["2026-11-21T14:00:01Z", "now"],
    ["2026-11-21T13:59:18Z", "40 s ago"],
    ["2026-11-21T13:59:55.500Z", "now"],
    ["2026-11-21T13:59:55Z", "5 s ago"],
    ["2026-11-21T13:59:00.500Z", "55 s ago"],
    ["2026-11-21T13:59:00Z", "1 min ago"],
    ["2026-11-21T14:00:48Z", "in 48 s"],
    ["2026-11-19T13:00:00Z", "2 d ago"],
  ])("%s is %s", (at, want) => {
    expect(ago(at, now)).toBe(want);
  });
  test("below a second nobody counts", () => {
    expect(lag(0.9)).toBe("less than 1 s behind");
    expect(lag(412)).toBe("6 min behind");
  });
});
