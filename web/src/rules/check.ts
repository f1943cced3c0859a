import type { FieldError, RuleDefinition } from "../api/client";

type Report = (field: string, code: string, message: string) => void;

/**
 * Finds what is wrong with a definition in the API's own words, as far as a browser can tell. Expressions, templates and
 * whether webhooks exist, the API alone knows. testdata/rule_cases.json holds both to the same answers.
 */
export function check(rule: Partial<RuleDefinition>): FieldError[] {
  const found: FieldError[] = [];
  const report: Report = (field, code, message) => {
    // The API, too, says one thing of a kind about a field.
    const said = found.some((error) => error.field === field && error.code === code);
    if (!said) found.push({ field, code, message });
  };
  text(report, "name", rule.name, 200, true);
  oneOf(report, "fireMode", rule.fireMode, ["PER_EXCHANGE", "COUNT_IN_WINDOW"]);
  oneOf(report, "severity", rule.severity, ["CRITICAL", "WARNING", "INFO"]);
  for (const part of ["environments", "applications", "routes"] as const) {
    list(report, `scope.${part}`, rule.scope?.[part] ?? [], { most: 100, longest: 200 });
  }
  filterOf(report, rule.filter ?? {});
  atMost(report, "titleTemplate", rule.titleTemplate, 1000);
  atMost(report, "messageTemplate", rule.messageTemplate, 10_000);
  bounded(report, "webhookIds", rule.webhookIds ?? [], 20);
  unique(report, "webhookIds", rule.webhookIds ?? []);
  bounded(report, "targets", rule.targets ?? [], 50);
  for (const [index, target] of (rule.targets ?? []).entries()) {
    oneOf(report, `targets[${index}].kind`, target.kind, ["user", "team", "role"]);
    text(report, `targets[${index}].name`, target.name, 200, true);
  }
  numbers(report, rule);
  if (rule.fireMode === "PER_EXCHANGE") perExchange(report, rule);
  if (rule.fireMode === "COUNT_IN_WINDOW") counting(report, rule);
  return found;
}

function filterOf(report: Report, filter: NonNullable<RuleDefinition["filter"]>): void {
  const { statuses = [], minDurationMs: least, maxDurationMs: most } = filter;
  bounded(report, "filter.statuses", statuses, 2);
  unique(report, "filter.statuses", statuses);
  for (const [index, status] of statuses.entries()) {
    oneOf(report, `filter.statuses[${index}]`, status, ["COMPLETED", "FAILED"]);
  }
  list(report, "filter.errorTypes", filter.errorTypes ?? [], { most: 100, longest: 500 });
  text(report, "filter.errorMessageContains", filter.errorMessageContains, 1000);
  text(report, "filter.errorMessageMatches", filter.errorMessageMatches, 1000);
  between(report, "filter.minDurationMs", least, 0, 9e12);
  between(report, "filter.maxDurationMs", most, 0, 9e12);
  if (least !== undefined && most !== undefined && least > most) {
    report("filter.maxDurationMs", "range", "The maximum duration is below the minimum; nothing could match");
  }
  bounded(report, "filter.attributes", filter.attributes ?? [], 50);
  for (const [index, { key, op, value }] of (filter.attributes ?? []).entries()) {
    const field = `filter.attributes[${index}]`;
    text(report, `${field}.key`, key, 200, true);
    oneOf(report, `${field}.op`, op, ["EQUALS", "EXISTS", "MATCHES"]);
    text(report, `${field}.value`, value, 1000);
    if (op === "EXISTS" && value) {
      report(`${field}.value`, "not_applicable", "EXISTS takes no value; leave it out or use EQUALS");
    }
  }
}

function numbers(report: Report, rule: Partial<RuleDefinition>): void {
  between(report, "intervalSeconds", rule.intervalSeconds, 1, 3600);
  between(report, "lookBackSeconds", rule.lookBackSeconds, 0, 604_800);
  between(report, "threshold", rule.threshold, 0, 1_000_000);
  between(report, "windowSeconds", rule.windowSeconds, 0, 86_400);
  if (rule.groupBy) oneOf(report, "groupBy", rule.groupBy, ["ROUTE", "APPLICATION", "ENVIRONMENT"]);
  between(report, "forDurationSeconds", rule.forDurationSeconds, 0, 86_400);
  between(report, "reNotifyMinutes", rule.reNotifyMinutes, 0, 10_080);
}

/** Why fields do not apply to a fire mode; also said beside where they would be. */
export const notApplicable = {
  reNotify: "Per-exchange rules fire exactly once — re-notify does not apply",
  forDuration: "Per-exchange rules fire at once — a duration does not apply",
  counting: "Per-exchange rules do not count — leave it out",
  lookBack: "Counting rules look at their whole window each time — leave it out",
} as const;

function perExchange(report: Report, rule: Partial<RuleDefinition>): void {
  const code = "not_applicable";
  if (rule.reNotifyMinutes) report("reNotifyMinutes", code, notApplicable.reNotify);
  if (rule.forDurationSeconds) report("forDurationSeconds", code, notApplicable.forDuration);
  for (const field of ["threshold", "windowSeconds", "groupBy", "notifyOnResolve"] as const) {
    if (rule[field]) report(field, code, notApplicable.counting);
  }
}

function counting(report: Report, rule: Partial<RuleDefinition>): void {
  const { threshold = 0, windowSeconds = 0, intervalSeconds = 1 } = rule;
  if (threshold < 1) report("threshold", "out_of_range", "Must be at least 1");
  if (windowSeconds < 10) report("windowSeconds", "out_of_range", "Must be from 10 to 86400");
  else if (intervalSeconds > windowSeconds) {
    const message = "Must not be above the window, or exchanges pass uncounted";
    report("intervalSeconds", "out_of_range", message);
  }
  if (rule.lookBackSeconds) report("lookBackSeconds", "not_applicable", notApplicable.lookBack);
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
  if (new Set(values).size < values.length) report(field, "unique", "Must not name the same thing twice");
}

function oneOf(report: Report, field: string, value: string | undefined, known: readonly string[]): void {
  if (!known.includes(value ?? "")) report(field, "unknown_value", `Must be one of ${known.join(", ")}`);
}

function between(report: Report, field: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined) return;
  if (value < least) report(field, "out_of_range", `Must be at least ${least}`);
  else if (value > most) report(field, "out_of_range", `Must be at most ${most}`);
}
