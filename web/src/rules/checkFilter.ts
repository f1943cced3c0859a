import type { RuleDefinition } from "../api/client";
import { type AttributeMatch, comparisons, contradiction, numberOf, numeric } from "./conditions";
import { between, bounded, list, oneOf, type Report, text, unique } from "./reports";

export const nothingLeft = "Excludes everything that is included, so nothing could match; change one of the two";

export type Filter = NonNullable<RuleDefinition["filter"]>;

/** Whether a filter excludes every exchange that has an attribute. */
export function excludesAttribute({ attributes = [] }: Filter, key: string): boolean {
  return attributes.some((match) => match.key === key && match.not && match.op === "EXISTS");
}

/** Whether a filter matches every exchange. */
export function matchesAll({
  statuses = [],
  minDurationMs,
  maxDurationMs,
  errorMessageContains,
  ...rest
}: Filter): boolean {
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

export function filterOf(report: Report, filter: Filter): void {
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
  const askedFor = "The filter requires messages that this excludes, so nothing could match; change one of the two";
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
    const message =
      "No value meets this and the other conditions on the attribute, so nothing could match; change one of them";
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
