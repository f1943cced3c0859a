import { setting } from "./setting";

/**
 * Instants are RFC 3339 in UTC with up to nine fractional digits. The functions here keep the
 * digits that a Date would drop, and show times in the zone and with the clock that the reader has
 * chosen.
 */

/** The zone of times, and whether a day has 12 or 24 hours. */
export const timeZone = setting("zone", ["local", "utc"]);
export const dayHours = setting("hours", ["24", "12"]);

type Part = "clock" | "day" | "dayAndYear" | "zone";

const parts: Record<Part, Intl.DateTimeFormatOptions> = {
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
  day: { day: "numeric", month: "short" },
  dayAndYear: { day: "numeric", month: "short", year: "numeric" },
  zone: { timeZoneName: "short" },
};

const made = new Map<string, Intl.DateTimeFormat>();

/** The format of a part by the reader's settings. Creating a format is expensive, and lists need many. */
function format(part: Part): Intl.DateTimeFormat {
  const [zone, hours] = [timeZone.current(), dayHours.current()];
  const key = `${part} ${zone} ${hours}`;
  const known = made.get(key);
  if (known) return known;
  const one = new Intl.DateTimeFormat("en-GB", {
    ...parts[part],
    hourCycle: hours === "12" ? "h12" : "h23",
    ...(zone === "utc" ? { timeZone: "UTC" } : {}),
  });
  made.set(key, one);
  return one;
}

/** The fraction of a second as written; "" if there is none: "123456789" in 14:02:07.123456789Z. */
export function fraction(at: string): string {
  return /\.(\d+)/.exec(at)?.[1] ?? "";
}

/** 14:02:07 with a number of decimals, or 02:02:07 pm: the decimals follow the seconds, not am or pm. */
function clockWith(date: Date, seconds: string | undefined): string {
  const found: Record<string, string> = {};
  for (const { type, value } of format("clock").formatToParts(date)) found[type] = value;
  const { hour = "", minute = "", second = "", dayPeriod } = found;
  const time = seconds === undefined ? `${hour}:${minute}` : `${hour}:${minute}:${second}${seconds}`;
  return dayPeriod ? `${time} ${dayPeriod}` : time;
}

/** 14:02:07.113 */
export function clockTime(at: string): string {
  return clockWith(new Date(at), `.${fraction(at).padEnd(3, "0").slice(0, 3)}`);
}

/** The text before the time of another day. */
function dayBefore(date: Date, now: number): string {
  const day = format("dayAndYear");
  if (day.format(date) === day.format(new Date(now))) return "";
  // Half a year away, a day and a month could be those of another year.
  return `${Math.abs(now - date.getTime()) > 182 * 86_400_000 ? day.format(date) : dayTime(date)} `;
}

/** 20 Nov */
export function dayTime(date: Date): string {
  return format("day").format(date);
}

/** 14:02:07.113 today, 20 Nov 14:02:07.113 before, 20 Nov 2025 14:02:07.113 long before. */
export function shortTime(at: string, now: number): string {
  return dayBefore(new Date(at), now) + clockTime(at);
}

/** 14:02:07 today, 20 Nov 14:02:07 before. */
export function secondTime(at: string, now: number): string {
  const date = new Date(at);
  return dayBefore(date, now) + clockWith(date, "");
}

/** 14:02 today, 20 Nov 14:02 before. */
export function minuteTime(at: string, now: number): string {
  const date = new Date(at);
  return dayBefore(date, now) + hourTime(date);
}

/** 14:02 */
export function hourTime(date: Date): string {
  return clockWith(date, undefined);
}

/** 21 Nov 2026, 14:02:07.113456789 CET: the complete instant. */
export function exactTime(at: string): string {
  const date = new Date(at);
  const digits = fraction(at);
  const clock = clockWith(date, digits ? `.${digits}` : "");
  return `${format("dayAndYear").format(date)}, ${clock} ${zoneAt(date)}`.trim();
}

/** CET or CEST: how the zone is called at an instant. */
function zoneAt(date: Date): string {
  const parts = format("zone").formatToParts(date);
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

const units: readonly (readonly [limit: number, size: number, unit: string])[] = [
  [60, 1, "s"],
  [60 * 60, 60, "min"],
  [24 * 60 * 60, 60 * 60, "h"],
  [Number.POSITIVE_INFINITY, 24 * 60 * 60, "d"],
];

/** "4 s", "12 min", "3 h", "2 d": in the largest whole unit. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  for (const [limit, size, unit] of units) {
    if (whole < limit) return `${Math.floor(whole / size)} ${unit}`;
  }
  return "";
}

/** A chosen length of time, exactly: "45 s", "10 min", "1 h 30 min". */
export function period(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 3600), "h"],
    [Math.floor((seconds % 3600) / 60), "min"],
    [seconds % 60, "s"],
  ] as const;
  const said = parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`);
  return said.join(" ") || "0 s";
}

/** A lag, for people: times below a second are not distinguished. */
export function lag(seconds: number): string {
  return seconds < 1 ? "less than 1 s behind" : `${span(seconds)} behind`;
}

/** The past goes by in steps of so many seconds, because a list in which each row counts every second is restless. */
const stepSeconds = 5;

/** "now", "10 s ago", "in 48 s". Clocks differ slightly: an instant up to a second ahead is now. */
export function ago(at: string, now: number): string {
  const seconds = (now - new Date(at).getTime()) / 1000;
  if (seconds < -1.5) return `in ${span(-seconds)}`;
  return seconds < stepSeconds ? "now" : `${span(seconds < 60 ? seconds - (seconds % stepSeconds) : seconds)} ago`;
}

/** The time between two instants, for people: "84 ms", "12.3 s", "2 min 5 s". */
export function between(from: string, to: string): string {
  const ms = new Date(to).getTime() - new Date(from).getTime();
  return ms < 1 ? "less than 1 ms" : duration(String(ms * 1_000_000));
}

/** Nanoseconds, as a string of digits, for people: "850 ns", "12.3 ms", "1.25 s", "2 min 5 s". */
export function duration(ns: string): string {
  let value: bigint;
  try {
    value = BigInt(ns);
  } catch {
    return ns;
  }
  if (value < 0n) return `−${duration(String(-value))}`;
  if (value < 1_000n) return `${value} ns`;
  if (value < 1_000_000n) return `${digits3(value, 1_000n)} µs`;
  if (value < 1_000_000_000n) return `${digits3(value, 1_000_000n)} ms`;
  const seconds = value / 1_000_000_000n;
  if (seconds < 60n) return `${digits3(value, 1_000_000_000n)} s`;
  if (seconds < 3600n) return `${seconds / 60n} min ${seconds % 60n} s`;
  return `${seconds / 3600n} h ${(seconds % 3600n) / 60n} min`;
}

/** The duration of an attempt, possibly in fractions of milliseconds: "659 µs", "84 ms", "less than 1 ms". */
export function took(ms: number): string {
  return ms > 0 ? duration(String(Math.round(ms * 1e6))) : "less than 1 ms";
}

/**
 * A number of units, to three significant digits, cut and not rounded, so that 999.99 ms does not
 * become 1000 ms. It is computed with integers: 2.3 in floating point times a hundred is less than
 * 230.
 */
function digits3(ns: bigint, unit: bigint): string {
  const scale = ns >= 100n * unit ? 1n : ns >= 10n * unit ? 10n : 100n;
  return String(Number((ns * scale) / unit) / Number(scale));
}

/** The zone in which times are shown and typed: "Europe/Berlin", "UTC". */
export function zoneName(): string {
  return timeZone.current() === "utc" ? "UTC" : ownZone();
}

/** The zone of this computer. */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The text of an instant in a datetime-local field, in the chosen zone: "2026-11-20T14:02"; "" for none. */
export function fieldTime(at: string): string {
  const date = new Date(at);
  if (at === "" || Number.isNaN(date.getTime())) return "";
  if (timeZone.current() === "utc") return date.toISOString().slice(0, 16);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** The instant for the text of such a field; "" for none. */
export function fieldInstant(text: string): string {
  const date = new Date(timeZone.current() === "utc" ? `${text}Z` : text);
  return text === "" || Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

const dayMs = 24 * 60 * 60 * 1000;

/** What a datetime-local field means by its text when the clocks change at that time; "" at any other time. */
export function clockChange(text: string, at: string): string {
  const date = new Date(at);
  if (text === "" || at === "" || timeZone.current() === "utc") return "";
  const meant = `${hourTime(date)} ${zoneAt(date)}`;
  const offset = (ms: number) => new Date(ms).getTimezoneOffset() * 60_000;
  const [before, after] = [offset(date.getTime() - dayMs), offset(date.getTime() + dayMs)];
  if (before === after) return "";
  if (fieldTime(at) !== text.slice(0, 16)) return `Clocks go forward, and skip this time. It means ${meant}.`;
  const moves = after - before;
  const first = offset(date.getTime()) === before;
  const other = new Date(date.getTime() + (first ? moves : -moves)).toISOString();
  if (fieldTime(other) !== text.slice(0, 16)) return "";
  return `Clocks go back, and this time comes twice. It means the ${first ? "first" : "second"}, ${meant}.`;
}
