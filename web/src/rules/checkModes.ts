import type { RuleDefinition } from "../api/client";
import { longestHours } from "./checkCalendar";
import { excludesAttribute, type Filter, matchesAll } from "./checkFilter";
import { meetsAll, standsFor } from "./conditions";
import type { Report } from "./reports";

/** Why fields do not apply to a fire mode. */
const notApplicable = {
  reNotify: "Rules about single exchanges send no reminders; leave it out",
  forDuration: "Rules about single exchanges fire at once; leave it out",
  counting: "Rules about single exchanges do not count; leave it out",
  notifyOnResolve: "Only people resolve the alerts of this rule; set an age or evidence, or leave it out",
  resolution: "The alerts of this rule resolve when the condition no longer holds; leave it out",
  lookBack: "Window rules evaluate their whole window each time; leave it out",
  threshold: "Only COUNT_IN_WINDOW and ABSENT_IN_WINDOW compare a number of exchanges; leave it out",
  absence: "Only ABSENT_IN_WINDOW expects exchanges; leave it out",
  ratio: "Only RATIO_IN_WINDOW compares a ratio; leave it out",
  duration: "Only DURATION_IN_WINDOW compares a duration; leave it out",
  attribute: "Only groupBy ATTRIBUTE takes an attribute; leave it out",
  volume: "A count needs no minimum volume; leave it out",
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

export function perExchange(report: Report, rule: Partial<RuleDefinition>): void {
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
    report("resolution.attribute", "not_applicable", "Only ATTRIBUTE compares an attribute; leave it out");
  }
}

export function counting(report: Report, rule: Partial<RuleDefinition>): void {
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
        "Every exchange of the scope matches, so the ratio would always be 100%; choose one status, or add a condition";
      report("filter.statuses", "contradiction", message);
    }
    if (short !== 0 && windowSeconds >= 10 && (short < 10 || short >= windowSeconds)) {
      report("shortWindowSeconds", "out_of_range", "Must be from 10 to less than the window");
    }
  } else {
    if (!rule.percentile) report("percentile", "unknown_value", "Must be one of 50, 95, 99");
    atLeastOne("durationMs", rule.durationMs ?? 0);
    if ((rule.durationMs ?? 0) > (rule.filter?.maxDurationMs ?? Number.POSITIVE_INFINITY)) {
      const message =
        "The filter excludes exchanges that last this long, so nothing could reach the threshold; lower the threshold, or raise the maximum duration";
      report("durationMs", "contradiction", message);
    }
    const { minDurationMs: least, maxDurationMs: most = Number.POSITIVE_INFINITY } = rule.filter ?? {};
    if (rule.durationMs && least !== undefined && rule.durationMs >= 1 && rule.durationMs <= least && least <= most) {
      const message =
        "The filter only matches exchanges that last this long, so the threshold would always be reached; raise the threshold, or lower the minimum duration";
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
    report("groupBy", code, "Error types cannot be expected; group by route, application, environment or attribute");
  }
  const needsGroup = "Set groupBy, or leave it out";
  if (!groupBy && expected.length > 0) report("expected", code, needsGroup);
  if (!groupBy && learnDays) report("learnDays", code, needsGroup);
  if (groupBy && expected.length === 0 && !learnDays) {
    report("expected", "required", "List the expected groups, or set the number of days from which they are learned");
  }
  if (expected.length > 0 && learnDays) {
    report("learnDays", code, "The groups are listed; leave it out, or remove the list");
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
      "Window and duration together must be shorter than the hours of the calendar, because the alert would never fire";
    report("forDurationSeconds", "out_of_range", message);
  }
}
