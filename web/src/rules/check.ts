import type { FieldError, FireMode, RuleDefinition } from "../api/client";
import { hours } from "./checkCalendar";
import { filterOf, nothingLeft } from "./checkFilter";
import { counting, perExchange } from "./checkModes";
import { excludesAll } from "./conditions";
import { atMost, between, bounded, list, oneOf, type Report, text, unique } from "./reports";
import { scopeLists } from "./values";

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
    report("webhookIds", "not_applicable", "The routing policy decides who is notified; remove the webhooks");
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
    report("runbookUrl", "address", "Must be a URL such as https://wiki.example/orders");
  }
  text(report, "note", rule.note, 4000);
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
