import type { RuleDefinition } from "../api/client";
import { listed } from "./words";

const week = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"] as const;

/** Hours of weekdays in words: "Mon to Fri from 09:00 to 17:00 (Europe/Berlin)". */
export function hoursWords({ weekdays, from, to, timeZone }: NonNullable<RuleDefinition["calendar"]>): string {
  const days = week.filter((day) => weekdays.includes(day));
  const named = days.map((day) => day.charAt(0) + day.slice(1).toLowerCase());
  const run = days.length > 2 && week.join().includes(days.join());
  const said = days.length === 7 ? "every day" : run ? `${named[0]} to ${named.at(-1)}` : listed(named);
  return `${said} from ${from} to ${to} (${timeZone})`;
}
