import type { RuleDefinition } from "../api/client";
import { oneOf, type Report, unique } from "./reports";

const weekdays = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] as const satisfies readonly Weekday[];

type Calendar = NonNullable<RuleDefinition["calendar"]>;
type Weekday = Calendar["weekdays"][number];

/** The minutes since midnight of a time of day; undefined if it is invalid. */
function minutes(text: string): number | undefined {
  const [, h, m] = /^(\d\d):([0-5]\d)$/.exec(text) ?? [];
  const sum = Number(h) * 60 + Number(m);
  return h !== undefined && sum <= 24 * 60 ? sum : undefined;
}

/**
 * The length of the hours of a calendar, in minutes. If the end is not later than the beginning, it
 * is on the next day.
 */
function hoursLong({ from, to }: Calendar): number | undefined {
  const [begin, end] = [minutes(from), minutes(to)];
  if (begin === undefined || end === undefined || begin === 24 * 60) return undefined;
  return end > begin ? end - begin : end - begin + 24 * 60;
}

/** The longest time without a break in the hours of a calendar, in seconds; undefined if they never end. */
export function longestHours(calendar: Calendar): number | undefined {
  const long = hoursLong(calendar);
  if (long === undefined || long < 24 * 60) return long && long * 60;
  let [days, most] = [0, 0];
  // Whole days meet.
  for (const day of [...weekdays, ...weekdays]) {
    days = calendar.weekdays.includes(day) ? days + 1 : 0;
    most = Math.max(most, days);
  }
  return most > 0 && most < weekdays.length ? most * 86_400 : undefined;
}

export function hours(report: Report, { timeZone, weekdays: days, from, to }: Calendar): void {
  const time = "Must be a time of day such as 08:00";
  if ((minutes(from) ?? 24 * 60) === 24 * 60) report("calendar.from", "time_of_day", time);
  if (minutes(to) === undefined) report("calendar.to", "time_of_day", time);
  if (!isZone(timeZone)) report("calendar.timeZone", "time_zone", "Must be a time zone such as Europe/Berlin");
  if (days.length === 0) report("calendar.weekdays", "required", "Choose at least one weekday");
  for (const [index, day] of days.entries()) oneOf(report, `calendar.weekdays[${index}]`, day, weekdays);
  unique(report, "calendar.weekdays", days);
}

function isZone(name: string): boolean {
  try {
    return name !== "" && Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}
