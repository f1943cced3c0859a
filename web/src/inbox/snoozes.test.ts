import { afterEach, expect, test, vi } from "vitest";
import { timeZone } from "../ui/time";
import { naps } from "./snoozes";

const until = (now: Date) => Object.fromEntries(naps(now).map(({ value, until: end }) => [value, end(now)]));

test.each([
  ["a Wednesday", new Date(2026, 10, 18, 23, 30), new Date(2026, 10, 19, 9), new Date(2026, 10, 23, 9)],
  ["a Monday", new Date(2026, 10, 23, 8), new Date(2026, 10, 24, 9), new Date(2026, 10, 30, 9)],
  ["a Saturday", new Date(2026, 10, 21, 8), new Date(2026, 10, 22, 9), new Date(2026, 10, 23, 9)],
  ["the last day of a month", new Date(2026, 10, 30, 12), new Date(2026, 11, 1, 9), new Date(2026, 11, 7, 9)],
])("on %s mornings are those that come", (_, now, tomorrow, monday) => {
  expect(until(now)).toMatchObject({ tomorrow, monday });
});

test("on a Sunday tomorrow is Monday, and is offered once", () => {
  const offered = naps(new Date(2026, 10, 22, 12));
  expect(offered.map(({ value }) => value)).toEqual(["1h", "4h", "24h", "tomorrow"]);
});

afterEach(() => void vi.unstubAllEnvs());

test("mornings are in the zone in which the reader sees times", () => {
  vi.stubEnv("TZ", "America/New_York");
  timeZone.set("utc");
  // In New York it is still Tuesday.
  expect(until(new Date("2026-11-18T03:00:00Z"))).toMatchObject({
    tomorrow: new Date("2026-11-19T09:00:00Z"),
    monday: new Date("2026-11-23T09:00:00Z"),
  });
});

test("what is offered before midnight is what it says after midnight", () => {
  const [shown, sent] = [new Date(2026, 10, 18, 23, 59), new Date(2026, 10, 19, 0, 1)];
  const ends = Object.fromEntries(naps(shown).map(({ label, until: end }) => [label, end(sent)]));
  expect(ends).toMatchObject({
    "For 1 hour": new Date(2026, 10, 19, 1, 1),
    "Until tomorrow, 19 Nov, at 9:00": new Date(2026, 10, 19, 9),
    "Until Monday, 23 Nov, at 9:00": new Date(2026, 10, 23, 9),
  });
});
