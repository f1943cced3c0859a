import { dayTime, timeZone } from "../ui/time";

/** An instant until which an alert may be snoozed. */
export interface Nap {
  value: string;
  label: string;
  /** Its end, for the moment at which the alert is snoozed: hours run from then, a morning stays the one that is offered. */
  until: (now: Date) => Date;
}

const hourMs = 3_600_000;
const morning = 9;

/** The instants that are offered; mornings are in the zone in which the reader sees times. */
export function naps(now: Date): readonly Nap[] {
  const later = (hours: number) => (from: Date) => new Date(from.getTime() + hours * hourMs);
  const tomorrow = at(now, 1);
  const weekday = timeZone.current() === "utc" ? now.getUTCDay() : now.getDay();
  const monday = at(now, (8 - weekday) % 7 || 7);
  return [
    { value: "1h", label: "For 1 hour", until: later(1) },
    { value: "4h", label: "For 4 hours", until: later(4) },
    { value: "24h", label: "For 24 hours", until: later(24) },
    { value: "tomorrow", label: `Until tomorrow, ${dayTime(tomorrow)}, at 9:00`, until: () => tomorrow },
    ...(monday.getTime() === tomorrow.getTime()
      ? []
      : [{ value: "monday", label: `Until Monday, ${dayTime(monday)}, at 9:00`, until: () => monday }]),
  ];
}

/** The morning a number of days later. */
function at(now: Date, days: number): Date {
  if (timeZone.current() === "utc") {
    return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + days, morning));
  }
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, morning);
}
