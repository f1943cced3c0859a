import type { FieldError, FireMode, RuleDefinition } from "../api/client";
import {
  type AttributeMatch,
  comparisons,
  contradiction,
  excludesAll,
  meetsAll,
  numberOf,
  numeric,
  standsFor,
} from "./conditions";
import { scopeLists } from "./definition";

type Report = (field: string, code: string, message: string) => void;

/**
 * Finds what is wrong with a definition in the API's own words, as far as a browser can check. Only
 * the API can check expressions, templates and whether webhooks exist. testdata/rule_cases.json
 * checks that both give the same answers.
 */
export function check(rule: Partial<RuleDefinition>): FieldError[] {
  const found: FieldError[] = [];
  const report: Report = (field, code, message) => {
    // The API also reports each code only once for a field.
    const said = found.some((error) => error.field === field && error.code === code);
    if (!said) found.push({ field, code, message });
  };
  text(report, "name", rule.name, 200, true);
  oneOf(report, "fireMode", rule.fireMode, fireModes);
  oneOf(report, "severity", rule.severity, ["CRITICAL", "WARNING", "INFO"]);
  for (const part of scopeLists) list(report, `scope.${part}`, rule.scope?.[part] ?? [], { most: 100, longest: 200 });
  for (const [part, except] of excluded) {
    if (excludesAll(rule.scope?.[part] ?? [], rule.scope?.[except] ?? [])) {
      report(`scope.${except}`, "contradiction", nothingLeft);
    }
  }
  filterOf(report, rule.filter ?? {});
  atMost(report, "titleTemplate", rule.titleTemplate, 1000);
  atMost(report, "messageTemplate", rule.messageTemplate, 10_000);
  bounded(report, "webhookIds", rule.webhookIds ?? [], 20);
  unique(report, "webhookIds", rule.webhookIds ?? []);
  if (rule.useRoutingPolicy && (rule.webhookIds ?? []).length > 0) {
    report("webhookIds", "not_applicable", "The routing policy decides who is notified — name no webhooks");
  }
  bounded(report, "targets", rule.targets ?? [], 50);
  for (const [index, target] of (rule.targets ?? []).entries()) {
    oneOf(report, `targets[${index}].kind`, target.kind, ["user", "team", "role"]);
    text(report, `targets[${index}].name`, target.name, 200, true);
  }
  about(report, rule);
  numbers(report, rule);
  if (rule.fireMode === "PER_EXCHANGE") perExchange(report, rule);
  else if (fireModes.some((mode) => mode === rule.fireMode)) counting(report, rule);
  return found;
}

const fireModes = [
  "PER_EXCHANGE",
  "COUNT_IN_WINDOW",
  "RATIO_IN_WINDOW",
  "DURATION_IN_WINDOW",
  "ABSENT_IN_WINDOW",
] as const satisfies readonly FireMode[];

const excluded = [
  ["environments", "notEnvironments"],
  ["applications", "notApplications"],
  ["routes", "notRoutes"],
] as const;
const nothingLeft = "Excludes everything that is included; nothing could match";

const labelName = /^[A-Za-z][A-Za-z0-9_.-]{0,62}$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the API refuses them in the same way
const address = /^https?:\/\/[^\x00-\x20\x7f/?#@<>"]+([/?#][^\x00-\x20\x7f<>"]*)?$/;

/** The information of a rule for people who handle its alerts. */
function about(report: Report, rule: Partial<RuleDefinition>): void {
  const { labels = {}, runbookUrl = "" } = rule;
  if (Object.keys(labels).length > 20) report("labels", "out_of_range", "Must be at most 20 entries");
  for (const [name, value] of Object.entries(labels)) {
    const field = `labels[${name}]`;
    if (!labelName.test(name)) {
      report(field, "label", "Must start with a letter, followed by up to 62 letters, digits, _, . or -");
    }
    text(report, field, value, 200, true);
  }
  text(report, "owner", rule.owner, 200);
  if (atMost(report, "runbookUrl", runbookUrl, 2000) && runbookUrl && !address.test(runbookUrl)) {
    report("runbookUrl", "address", "Must be an address such as https://wiki.example/orders");
  }
  text(report, "note", rule.note, 4000);
}

type Filter = NonNullable<RuleDefinition["filter"]>;

/** Whether a filter excludes every exchange that has an attribute. */
function excludesAttribute({ attributes = [] }: Filter, key: string): boolean {
  return attributes.some((match) => match.key === key && match.not && match.op === "EXISTS");
}

/** Whether a filter matches every exchange. */
function matchesAll({ statuses = [], minDurationMs, maxDurationMs, errorMessageContains, ...rest }: Filter): boolean {
  const { errorMessageMatches, errorTypes, notErrorTypes, errorMessageNotContains, errorMessageNotMatches } = rest;
  const lists = [errorTypes, notErrorTypes, errorMessageNotContains, errorMessageNotMatches, rest.attributes];
  return (
    statuses.length === 2 &&
    !minDurationMs && // every exchange lasts 0 ms
    maxDurationMs === undefined &&
    !errorMessageContains &&
    !errorMessageMatches &&
    lists.every((list) => !list?.length)
  );
}

function filterOf(report: Report, filter: Filter): void {
  const { statuses = [], minDurationMs: least, maxDurationMs: most } = filter;
  bounded(report, "filter.statuses", statuses, 2);
  unique(report, "filter.statuses", statuses);
  for (const [index, status] of statuses.entries()) {
    oneOf(report, `filter.statuses[${index}]`, status, ["COMPLETED", "FAILED"]);
  }
  list(report, "filter.errorTypes", filter.errorTypes ?? [], { most: 100, longest: 500 });
  list(report, "filter.notErrorTypes", filter.notErrorTypes ?? [], { most: 100, longest: 500 });
  text(report, "filter.errorMessageContains", filter.errorMessageContains, 1000);
  text(report, "filter.errorMessageMatches", filter.errorMessageMatches, 1000);
  for (const part of ["errorMessageNotContains", "errorMessageNotMatches"] as const) {
    list(report, `filter.${part}`, filter[part] ?? [], { most: 20, longest: 1000 });
  }
  between(report, "filter.minDurationMs", least, 0, 9e12);
  between(report, "filter.maxDurationMs", most, 0, 9e12);
  if (least !== undefined && most !== undefined && least > most) {
    report("filter.maxDurationMs", "range", "Must not be below the minimum duration, because no exchange could match");
  }
  const { errorTypes = [], notErrorTypes = [], errorMessageContains = "", errorMessageMatches = "" } = filter;
  if (errorTypes.length > 0 && errorTypes.every((type) => notErrorTypes.includes(type))) {
    report("filter.notErrorTypes", "contradiction", nothingLeft);
  }
  const askedFor = "The filter requires messages that this excludes; nothing could match";
  for (const [index, part] of (filter.errorMessageNotContains ?? []).entries()) {
    if (part && errorMessageContains.includes(part)) {
      report(`filter.errorMessageNotContains[${index}]`, "contradiction", askedFor);
    }
  }
  for (const [index, expression] of (filter.errorMessageNotMatches ?? []).entries()) {
    if (expression && expression === errorMessageMatches) {
      report(`filter.errorMessageNotMatches[${index}]`, "contradiction", askedFor);
    }
  }
  bounded(report, "filter.attributes", filter.attributes ?? [], 50);
  for (const [index, match] of (filter.attributes ?? []).entries()) {
    attribute(report, `filter.attributes[${index}]`, match);
  }
  const against = contradiction(filter.attributes ?? []);
  if (against >= 0) {
    const part = { EXISTS: "op", IN: "values" }[String(filter.attributes?.[against]?.op)] ?? "value";
    const message = "No value meets this and the other conditions on the attribute; nothing could match";
    report(`filter.attributes[${against}].${part}`, "contradiction", message);
  }
}

function attribute(report: Report, field: string, { key, op, value = "", values = [] }: AttributeMatch): void {
  text(report, `${field}.key`, key, 200, true);
  oneOf(report, `${field}.op`, op, comparisons);
  text(report, `${field}.value`, value, 1000);
  bounded(report, `${field}.values`, values, 100);
  for (const [index, one] of values.entries()) text(report, `${field}.values[${index}]`, one, 1000);
  if (op === "EXISTS" && value) {
    report(`${field}.value`, "not_applicable", "EXISTS takes no value; leave it out or use EQUALS");
  }
  if (op === "IN") {
    if (value) report(`${field}.value`, "not_applicable", "IN takes a list; enter the values in values");
    if (values.length === 0) report(`${field}.values`, "required", "Must not be empty");
  } else if (values.length > 0) {
    report(`${field}.values`, "not_applicable", "Only IN takes a list; enter the value in value");
  }
  if (numeric(op) && numberOf(value) === undefined) {
    const digits = "with at most 18 digits on each side of the point";
    report(`${field}.value`, "number", `Must be a decimal number, such as 100 or 0.5, ${digits}`);
  }
}

const groupings = ["ROUTE", "APPLICATION", "ENVIRONMENT", "ERROR_TYPE", "ATTRIBUTE"];

function numbers(report: Report, rule: Partial<RuleDefinition>): void {
  between(report, "intervalSeconds", rule.intervalSeconds, 1, 3600);
  between(report, "lookBackSeconds", rule.lookBackSeconds, 0, 604_800);
  between(report, "threshold", rule.threshold, 0, 1_000_000);
  between(report, "windowSeconds", rule.windowSeconds, 0, 86_400);
  between(report, "percent", rule.percent, 0, 100);
  between(report, "shortWindowSeconds", rule.shortWindowSeconds, 0, 86_400);
  if (rule.percentile) oneOf(report, "percentile", String(rule.percentile), ["50", "95", "99"]);
  between(report, "durationMs", rule.durationMs, 0, 9_000_000_000_000);
  between(report, "minVolume", rule.minVolume, 0, 1_000_000);
  if (rule.groupBy) oneOf(report, "groupBy", rule.groupBy, groupings);
  text(report, "groupByAttribute", rule.groupByAttribute, 200);
  list(report, "expected", rule.expected ?? [], { most: 1000, longest: 500 });
  unique(report, "expected", rule.expected ?? []);
  between(report, "learnDays", rule.learnDays, 0, 14);
  if (rule.calendar) hours(report, rule.calendar);
  between(report, "forDurationSeconds", rule.forDurationSeconds, 0, 86_400);
  between(report, "reNotifyMinutes", rule.reNotifyMinutes, 0, 10_080);
  between(report, "resolution.afterSeconds", rule.resolution?.afterSeconds || undefined, 60, 31_536_000);
  if (rule.resolution?.evidence) {
    oneOf(report, "resolution.evidence", rule.resolution.evidence, ["CORRELATION_ID", "ATTRIBUTE"]);
  }
  text(report, "resolution.attribute", rule.resolution?.attribute, 500);
}

export const weekdays = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] as const satisfies readonly Weekday[];

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
function longestHours(calendar: Calendar): number | undefined {
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

function hours(report: Report, { timeZone, weekdays: days, from, to }: Calendar): void {
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

/** Why fields do not apply to a fire mode; also shown in their place. */
export const notApplicable = {
  reNotify: "Per-exchange rules fire exactly once — re-notify does not apply",
  forDuration: "Per-exchange rules fire at once — a duration does not apply",
  counting: "Per-exchange rules do not count — leave it out",
  notifyOnResolve: "Only people resolve the alerts of this rule — set an age or evidence, or leave it out",
  resolution: "The alerts of this rule resolve when the condition no longer holds — leave it out",
  lookBack: "Counting rules look at their whole window each time — leave it out",
  threshold: "Only COUNT_IN_WINDOW and ABSENT_IN_WINDOW compare a number of exchanges — leave it out",
  absence: "Only ABSENT_IN_WINDOW expects exchanges — leave it out",
  ratio: "Only RATIO_IN_WINDOW compares a share — leave it out",
  duration: "Only DURATION_IN_WINDOW compares a duration — leave it out",
  attribute: "Only groupBy ATTRIBUTE takes an attribute — leave it out",
  volume: "A count needs no minimum volume — leave it out",
} as const;

/** The fields that not all window modes use, and why the others do not. */
const compared = [
  ["percent", ["RATIO_IN_WINDOW"], notApplicable.ratio],
  ["shortWindowSeconds", ["RATIO_IN_WINDOW"], notApplicable.ratio],
  ["percentile", ["DURATION_IN_WINDOW"], notApplicable.duration],
  ["durationMs", ["DURATION_IN_WINDOW"], notApplicable.duration],
  ["minVolume", ["RATIO_IN_WINDOW", "DURATION_IN_WINDOW"], notApplicable.volume],
  ["threshold", ["COUNT_IN_WINDOW", "ABSENT_IN_WINDOW"], notApplicable.threshold],
  ["expected", ["ABSENT_IN_WINDOW"], notApplicable.absence],
  ["learnDays", ["ABSENT_IN_WINDOW"], notApplicable.absence],
  ["calendar", ["ABSENT_IN_WINDOW"], notApplicable.absence],
] as const;

function perExchange(report: Report, rule: Partial<RuleDefinition>): void {
  const code = "not_applicable";
  if (rule.reNotifyMinutes) report("reNotifyMinutes", code, notApplicable.reNotify);
  if (rule.forDurationSeconds) report("forDurationSeconds", code, notApplicable.forDuration);
  for (const field of ["threshold", "windowSeconds", "groupBy", "groupByAttribute"] as const) {
    if (rule[field]) report(field, code, notApplicable.counting);
  }
  if (rule.notifyOnResolve && !rule.resolution) report("notifyOnResolve", code, notApplicable.notifyOnResolve);
  if (rule.resolution) resolving(report, rule.resolution, rule.filter ?? {});
  for (const [field] of compared) if (rule[field]) report(field, code, notApplicable.counting);
}

/** What resolves alerts, in addition to people. */
function resolving(report: Report, by: NonNullable<RuleDefinition["resolution"]>, filter: Filter): void {
  const { afterSeconds, evidence, attribute } = by;
  if (!afterSeconds && !evidence) {
    report("resolution", "required", "Set the age or the evidence by which alerts are resolved");
  }
  if (evidence && filter.statuses?.includes("COMPLETED")) {
    const message =
      "The rule alerts about exchanges that complete, so a completed exchange cannot be evidence; remove COMPLETED from the statuses, or leave it out";
    report("resolution.evidence", "not_applicable", message);
  }
  if (evidence === "ATTRIBUTE" && !attribute) report("resolution.attribute", "required", "Must not be empty");
  if (evidence === "ATTRIBUTE" && attribute && excludesAttribute(filter, attribute)) {
    const message =
      "The filter excludes exchanges with this attribute, so nothing would ever be evidence; change the filter, or name another attribute";
    report("resolution.attribute", "contradiction", message);
  }
  if (evidence !== "ATTRIBUTE" && attribute) {
    report("resolution.attribute", "not_applicable", "Only ATTRIBUTE compares an attribute — leave it out");
  }
}

function counting(report: Report, rule: Partial<RuleDefinition>): void {
  const { windowSeconds = 0, intervalSeconds = 1 } = rule;
  if (windowSeconds < 10) report("windowSeconds", "out_of_range", "Must be from 10 to 86400");
  else if (intervalSeconds > windowSeconds) {
    const message = "Must not be longer than the window, because some exchanges would not be counted";
    report("intervalSeconds", "out_of_range", message);
  }
  if (rule.lookBackSeconds) report("lookBackSeconds", "not_applicable", notApplicable.lookBack);
  if (rule.groupBy === "ATTRIBUTE" && !rule.groupByAttribute) {
    report("groupByAttribute", "required", "Name the attribute whose values are counted");
  }
  if (rule.groupBy !== "ATTRIBUTE" && rule.groupByAttribute) {
    report("groupByAttribute", "not_applicable", notApplicable.attribute);
  }
  if (rule.resolution) report("resolution", "not_applicable", notApplicable.resolution);
  for (const [field, modes, why] of compared) {
    if (rule[field] && !modes.some((mode) => mode === rule.fireMode)) report(field, "not_applicable", why);
  }
  comparing(report, rule);
}

/** What each mode compares. */
function comparing(report: Report, rule: Partial<RuleDefinition>): void {
  const { threshold = 0, windowSeconds = 0, percent = 0, shortWindowSeconds: short = 0, minVolume = 0 } = rule;
  const atLeastOne = (field: string, value: number) => {
    if (value < 1) report(field, "out_of_range", "Must be at least 1");
  };
  if (rule.fireMode === "COUNT_IN_WINDOW" || rule.fireMode === "ABSENT_IN_WINDOW") {
    atLeastOne("threshold", threshold);
    if (rule.fireMode === "ABSENT_IN_WINDOW") expecting(report, rule);
    return;
  }
  if (rule.fireMode === "RATIO_IN_WINDOW") {
    const thousandths = percent * 1000;
    if (thousandths < 0.5 || Math.abs(thousandths - Math.round(thousandths)) >= 1e-6) {
      report("percent", "out_of_range", "Must be from 0.001 to 100, with at most three decimals");
    }
    if (matchesAll(rule.filter ?? {})) {
      const message =
        "Every exchange of the scope matches, so the share would always be 100 %; choose one status, or add a condition";
      report("filter.statuses", "contradiction", message);
    }
    if (short !== 0 && windowSeconds >= 10 && (short < 10 || short >= windowSeconds)) {
      report("shortWindowSeconds", "out_of_range", "Must be from 10 to less than the window");
    }
  } else {
    if (!rule.percentile) report("percentile", "unknown_value", "Must be one of 50, 95, 99");
    atLeastOne("durationMs", rule.durationMs ?? 0);
    if ((rule.durationMs ?? 0) > (rule.filter?.maxDurationMs ?? Number.POSITIVE_INFINITY)) {
      const message = "The filter excludes exchanges that last this long; nothing could reach the threshold";
      report("durationMs", "contradiction", message);
    }
    const { minDurationMs: least, maxDurationMs: most = Number.POSITIVE_INFINITY } = rule.filter ?? {};
    if (rule.durationMs && least !== undefined && rule.durationMs >= 1 && rule.durationMs <= least && least <= most) {
      const message =
        "The filter only matches exchanges that last this long, so the threshold would always be reached; raise it, or lower the minimum duration";
      report("durationMs", "contradiction", message);
    }
  }
  atLeastOne("minVolume", minVolume);
}

/** The names that the scope includes and excludes, for the field that exchanges are grouped by. */
function namesOf({ groupBy, scope = {} }: Partial<RuleDefinition>): [string[], string[]] {
  if (groupBy === "ROUTE") return [scope.routes ?? [], scope.notRoutes ?? []];
  if (groupBy === "APPLICATION") return [scope.applications ?? [], scope.notApplications ?? []];
  if (groupBy === "ENVIRONMENT") return [scope.environments ?? [], scope.notEnvironments ?? []];
  return [[], []];
}

/** What a rule on absence expects. */
function expecting(report: Report, rule: Partial<RuleDefinition>): void {
  const { groupBy, expected = [], learnDays = 0, calendar, windowSeconds = 0, forDurationSeconds = 0 } = rule;
  const code = "not_applicable";
  if (groupBy === "ERROR_TYPE") {
    report("groupBy", code, "Errors are not expected — group by route, application, environment or attribute");
  }
  const needsGroup = "Set groupBy, or leave it out";
  if (!groupBy && expected.length > 0) report("expected", code, needsGroup);
  if (!groupBy && learnDays) report("learnDays", code, needsGroup);
  if (groupBy && expected.length === 0 && !learnDays) {
    report("expected", "required", "List the expected groups, or set the number of days from which they are learned");
  }
  if (expected.length > 0 && learnDays) {
    report("learnDays", code, "The groups are listed — leave it out, or remove the list");
  }
  const attribute = rule.groupByAttribute ?? "";
  if (groupBy === "ATTRIBUTE" && learnDays && excludesAttribute(rule.filter ?? {}, attribute)) {
    const message =
      "The filter excludes exchanges with this attribute, so no group would be learned; change the filter, or name another attribute";
    report("groupByAttribute", "contradiction", message);
  }
  const [some, others] = namesOf(rule);
  for (const [index, name] of expected.entries()) {
    const outside = (some.length > 0 && !some.some(standsFor(name))) || others.some(standsFor(name));
    if (name && outside)
      report(
        `expected[${index}]`,
        code,
        "The scope excludes this group, so it would always be missing; change the scope, or remove the group",
      );
    const conditions = (rule.filter?.attributes ?? []).filter(({ key }) => key === rule.groupByAttribute);
    if (name && groupBy === "ATTRIBUTE" && !meetsAll(conditions, name)) {
      report(
        `expected[${index}]`,
        code,
        "The filter excludes this group, so it would always be missing; change the filter, or remove the group",
      );
    }
  }
  if (!calendar) return;
  const longest = longestHours(calendar) ?? Number.POSITIVE_INFINITY;
  if (windowSeconds >= longest) {
    const message = "Must be shorter than the hours of the calendar, because it would never lie within them";
    report("windowSeconds", "out_of_range", message);
  } else if (windowSeconds + forDurationSeconds >= longest) {
    const message =
      "With the window, must be shorter than the hours of the calendar, because the alert would never fire";
    report("forDurationSeconds", "out_of_range", message);
  }
}

function text(report: Report, field: string, value: string | undefined, longest: number, required = false): void {
  if (required && !value) report(field, "required", "Must not be empty");
  else if (atMost(report, field, value, longest) && value?.includes("\0")) {
    report(field, "text", "Must be valid UTF-8 text without NUL");
  }
}

function atMost(report: Report, field: string, value: string | undefined, longest: number): boolean {
  const fits = [...(value ?? "")].length <= longest;
  if (!fits) report(field, "out_of_range", `Must be at most ${longest} characters`);
  return fits;
}

function list(
  report: Report,
  field: string,
  values: readonly string[],
  bound: { most: number; longest: number },
): void {
  bounded(report, field, values, bound.most);
  for (const [index, value] of values.entries()) text(report, `${field}[${index}]`, value, bound.longest, true);
}

function bounded(report: Report, field: string, values: readonly unknown[], most: number): void {
  if (values.length > most) report(field, "out_of_range", `Must be at most ${most} entries`);
}

function unique(report: Report, field: string, values: readonly string[]): void {
  if (new Set(values).size < values.length) report(field, "unique", "Must not contain the same entry twice");
}

function oneOf(report: Report, field: string, value: string | undefined, known: readonly string[]): void {
  if (!known.includes(value ?? "")) report(field, "unknown_value", `Must be one of ${known.join(", ")}`);
}

function between(report: Report, field: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined) return;
  if (value < least) report(field, "out_of_range", `Must be at least ${least}`);
  else if (value > most) report(field, "out_of_range", `Must be at most ${most}`);
}
