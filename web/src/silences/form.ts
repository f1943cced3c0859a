import type { Alert, AlertMatch, Recurrence, Severity, Silence, SilenceDefinition } from "../api/client";
import { exactTime, period, zoneName } from "../ui/time";
import { conditionLine, parseConditions } from "./conditions";

export type Weekday = Recurrence["weekdays"][number];

export const weekdays: readonly Weekday[] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/** "MON" as "Mon". */
export const shortDay = (day: Weekday) => `${day.charAt(0)}${day.slice(1).toLowerCase()}`;

/** The fields of a match in a form. */
export interface MatchValues {
  rules: string[];
  severities: Severity[];
  scope: Record<
    "environments" | "notEnvironments" | "applications" | "notApplications" | "routes" | "notRoutes",
    string[]
  >;
  errorTypes: string[];
  notErrorTypes: string[];
  messageContains: string;
  messageMatches: string;
  labels: string;
  attributes: string;
  /** The parts of the filter that the form does not show, which stay unchanged. */
  rest: NonNullable<AlertMatch["filter"]>;
}

/** The content of the form. Instants are in the API's form; blank means none. */
export interface Values extends MatchValues {
  name: string;
  reason: string;
  recurs: boolean;
  startsAt: string;
  endsAt: string;
  timeZone: string;
  weekdays: Weekday[];
  from: string;
  hours: string;
  digest: boolean;
}

export function blankMatch(): MatchValues {
  return {
    rules: [],
    severities: [],
    scope: {
      environments: [],
      notEnvironments: [],
      applications: [],
      notApplications: [],
      routes: [],
      notRoutes: [],
    },
    errorTypes: [],
    notErrorTypes: [],
    messageContains: "",
    messageMatches: "",
    labels: "",
    attributes: "",
    rest: {},
  };
}

export function blank(): Values {
  return {
    ...blankMatch(),
    name: "",
    reason: "",
    recurs: false,
    startsAt: "",
    endsAt: "",
    timeZone: zoneName(),
    weekdays: [],
    from: "22:00",
    hours: "8",
    digest: false,
  };
}

/** The names of the form's fields in the server's errors. */
export const fields = [
  "name",
  "reason",
  "match.rules",
  "match.severities",
  "match.labels",
  "match.scope.environments",
  "match.scope.notEnvironments",
  "match.scope.applications",
  "match.scope.notApplications",
  "match.scope.routes",
  "match.scope.notRoutes",
  "match.filter.errorTypes",
  "match.filter.notErrorTypes",
  "match.filter.errorMessageContains",
  "match.filter.errorMessageMatches",
  "match.filter.attributes",
  "match",
  "startsAt",
  "endsAt",
  "recurrence.timeZone",
  "recurrence.weekdays",
  "recurrence.from",
  "recurrence.durationMinutes",
  "digest",
] as const;

const ofServer: Record<string, string> = {
  // A silence without conditions: all severities are the condition that every alert meets.
  match: "severities",
  "match.filter.errorMessageContains": "messageContains",
  "match.filter.errorMessageMatches": "messageMatches",
  "match.filter.attributes": "attributes",
  "recurrence.durationMinutes": "hours",
};

/** The form's name for a field of the server. */
export function pathOf(field: string): string {
  return ofServer[field] ?? field.replace(/^(match\.filter|match|recurrence)\./, "");
}

/** An object without empty fields. */
function compact<T extends object>(of: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(of).filter(([, value]) => value !== "" && !(Array.isArray(value) && value.length === 0)),
  ) as Partial<T>;
}

/** The fields with lines that are not conditions, and their errors. */
export function wrongLines(v: MatchValues): Record<string, string> {
  const wrong: Record<string, string> = {};
  for (const field of ["labels", "attributes"] as const) {
    const lines = parseConditions(v[field]).wrong;
    if (lines.length > 0)
      wrong[field] = `Cannot be read: ${lines.join("; ")}. Write each line as a condition, such as team = orders.`;
  }
  return wrong;
}

export function matchOf(v: MatchValues): AlertMatch {
  const filter = {
    ...v.rest,
    ...compact({
      errorTypes: v.errorTypes,
      notErrorTypes: v.notErrorTypes,
      errorMessageContains: v.messageContains,
      errorMessageMatches: v.messageMatches,
      attributes: parseConditions(v.attributes).conditions,
    }),
  };
  const scope = compact(v.scope);
  return {
    ...compact({ rules: v.rules, severities: v.severities, labels: parseConditions(v.labels).conditions }),
    ...(Object.keys(scope).length > 0 ? { scope } : {}),
    ...(Object.keys(filter).length > 0 ? { filter } : {}),
  };
}

export function recurrenceOf(v: Values): Recurrence | undefined {
  if (!v.recurs) return undefined;
  return {
    timeZone: v.timeZone,
    weekdays: weekdays.filter((day) => v.weekdays.includes(day)),
    from: v.from,
    durationMinutes: Math.round(Number(v.hours.replace(",", ".")) * 60) || 0,
  };
}

/** The start and the end, as far as they are given. */
export function rangeOf(v: Values): Pick<SilenceDefinition, "startsAt" | "endsAt"> {
  return compact({ startsAt: v.startsAt, endsAt: v.endsAt });
}

export function definitionOf(v: Values): SilenceDefinition {
  const recurrence = recurrenceOf(v);
  return {
    name: v.name.trim(),
    reason: v.reason.trim(),
    match: matchOf(v),
    ...rangeOf(v),
    ...(recurrence ? { recurrence } : {}),
    ...(v.digest ? { digest: true } : {}),
  };
}

/** The content of the form for a match. */
export function valuesOfMatch(match: AlertMatch): MatchValues {
  const {
    errorTypes = [],
    notErrorTypes = [],
    errorMessageContains = "",
    errorMessageMatches = "",
    attributes = [],
    ...rest
  } = match.filter ?? {};
  const none = blankMatch();
  return {
    rules: [...(match.rules ?? [])],
    severities: [...(match.severities ?? [])],
    scope: { ...none.scope, ...match.scope },
    errorTypes,
    notErrorTypes,
    messageContains: errorMessageContains,
    messageMatches: errorMessageMatches,
    labels: (match.labels ?? []).map(conditionLine).join("\n"),
    attributes: attributes.map(conditionLine).join("\n"),
    rest,
  };
}

export function valuesOf(silence: Silence): Values {
  const { match, recurrence } = silence;
  return {
    ...blank(),
    ...valuesOfMatch(match),
    name: silence.name,
    reason: silence.reason,
    startsAt: silence.startsAt,
    endsAt: silence.endsAt ?? "",
    digest: silence.digest,
    ...(recurrence
      ? {
          recurs: true,
          timeZone: recurrence.timeZone,
          weekdays: [...recurrence.weekdays],
          from: recurrence.from,
          hours: String(Math.round((recurrence.durationMinutes / 60) * 100) / 100),
        }
      : {}),
  };
}

const hourMs = 60 * 60 * 1000;

/**
 * Whether a silence has ended, and cannot be changed any more. One that recurs is past already when no window remains before
 * its end.
 */
export function hasEnded({ state, endedAt, endsAt }: Silence, now = Date.now()): boolean {
  return state === "PAST" && (endedAt !== undefined || endsAt === undefined || Date.parse(endsAt) <= now);
}

/** The instant a number of hours from now, to the minute. */
export function inHours(hours: number, now = Date.now()): string {
  const at = new Date(now + hours * hourMs);
  at.setUTCSeconds(0, 0);
  return at.toISOString();
}

/** A silence for an alert and similar ones, for an hour: its rule, its place and its error. */
export function valuesFor(alert: Alert): Values {
  const { exchange, count, ruleId, ruleName } = alert;
  const v = { ...blank(), rules: [ruleId], name: ruleName || alert.title, endsAt: inHours(1) };
  if (count) {
    const { groupBy, groupByAttribute: key = "", group } = count;
    if (!group) return v;
    if (groupBy === "ATTRIBUTE") {
      // A condition cannot use a name that replaces a long value.
      if (/^(hex|sha256|sha-256 of a long value):/.test(group)) return v;
      return { ...v, attributes: conditionLine({ key, op: "EQUALS", value: group }) };
    }
    const list = { APPLICATION: "applications", ROUTE: "routes", ENVIRONMENT: "environments" } as const;
    if (groupBy === "ERROR_TYPE") return { ...v, errorTypes: [group] };
    return groupBy ? { ...v, scope: { ...v.scope, [list[groupBy]]: [group] } } : v;
  }
  if (!exchange) return v;
  return {
    ...v,
    scope: {
      ...v.scope,
      applications: exchange.application ? [exchange.application] : [],
      routes: exchange.route ? [exchange.route] : [],
    },
    errorTypes: exchange.errorType ? [exchange.errorType] : [],
  };
}

/** What a silence applies to, in a sentence for a list. */
export function matchWords(match: AlertMatch, ruleName: (id: string) => string): string {
  const { rules = [], severities = [], labels = [], scope = {}, filter = {} } = match;
  const parts: string[] = [];
  const some = (word: string, list: readonly string[] | undefined) => {
    if (list && list.length > 0) parts.push(`${word} ${list.join(" or ")}`);
  };
  some("rule", rules.map(ruleName));
  some(
    "severity",
    severities.map((one) => one.toLowerCase()),
  );
  some("label", labels.length > 0 ? [labels.map(conditionLine).join(", ")] : []);
  some("application", scope.applications);
  some("application not", scope.notApplications);
  some("route", scope.routes);
  some("route not", scope.notRoutes);
  some("environment", scope.environments);
  some("environment not", scope.notEnvironments);
  some("status", filter.statuses);
  some("error", filter.errorTypes);
  some("error not", filter.notErrorTypes);
  some("message contains", filter.errorMessageContains ? [`“${filter.errorMessageContains}”`] : []);
  some(
    "message does not contain",
    filter.errorMessageNotContains?.map((one) => `“${one}”`),
  );
  some("message matches", filter.errorMessageMatches ? [filter.errorMessageMatches] : []);
  some("message does not match", filter.errorMessageNotMatches);
  if (filter.minDurationMs !== undefined) parts.push(`at least ${filter.minDurationMs} ms`);
  if (filter.maxDurationMs !== undefined) parts.push(`at most ${filter.maxDurationMs} ms`);
  some("attribute", filter.attributes?.length ? [filter.attributes.map(conditionLine).join(", ")] : []);
  return parts.join(" · ");
}

/** "Mon, Tue 22:00 for 8 h (Europe/Berlin)". */
export function recurrenceWords({ timeZone, weekdays: days, from, durationMinutes }: Recurrence): string {
  const all = days.length === weekdays.length;
  const which = all
    ? "every day"
    : weekdays
        .filter((day) => days.includes(day))
        .map(shortDay)
        .join(", ");
  return `${which} at ${from} for ${period(durationMinutes * 60)} (${timeZone})`;
}

/** When a silence is in force, in the form's format. */
export function whenWords(v: Values): string {
  const recurrence = recurrenceOf(v);
  const end = v.endsAt && `until ${exactTime(v.endsAt)}`;
  const begin = v.startsAt && `from ${exactTime(v.startsAt)}`;
  return [recurrence && recurrenceWords(recurrence), begin, end].filter(Boolean).join(", ") || "–";
}
