import type { GroupBy, RuleDefinition } from "../api/client";
import { period } from "../ui/time";

export type AttributeMatch = NonNullable<NonNullable<RuleDefinition["filter"]>["attributes"]>[number];

type Readable = Pick<RuleDefinition, "scope" | "filter"> &
  Partial<
    Pick<
      RuleDefinition,
      | "fireMode"
      | "threshold"
      | "windowSeconds"
      | "groupBy"
      | "forDurationSeconds"
      | "reNotifyMinutes"
      | "notifyOnResolve"
    >
  >;

/**
 * Reads a rule back in plain words: "Whenever an exchange of orders fails in production, tell #ops once.", "Whenever at
 * least 5 exchanges of orders fail within 10 min on one route, tell #ops; again each 60 min until acknowledged; and when
 * it is over."
 */
export function sentence(rule: Readable & { unreadable?: string }, webhookNames: readonly string[]): string {
  if (rule.unreadable) return "The stored definition of this rule cannot be read.";
  return rule.fireMode === "COUNT_IN_WINDOW"
    ? `Whenever ${counted(rule)}, ${reminders(rule, webhookNames)}.`
    : `Whenever an exchange ${[...place(rule), event(rule, false)].join(" ")}, ${consequence(webhookNames)}.`;
}

const within: Record<GroupBy, string> = {
  ROUTE: "on one route",
  APPLICATION: "of one application",
  ENVIRONMENT: "in one environment",
  ERROR_TYPE: "with one error type",
};

function counted(rule: Readable): string {
  const { threshold = 0, windowSeconds = 0, groupBy, forDurationSeconds } = rule;
  const many = threshold !== 1;
  return [
    threshold > 0 ? `at least ${threshold} ${many ? "exchanges" : "exchange"}` : "some number of exchanges",
    ...place(rule),
    event(rule, many),
    windowSeconds > 0 ? `within ${period(windowSeconds)}` : "within some time",
    groupBy ? within[groupBy] : "",
    forDurationSeconds ? `and that lasts ${period(forDurationSeconds)}` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

function reminders({ reNotifyMinutes, notifyOnResolve }: Readable, webhookNames: readonly string[]): string {
  if (webhookNames.length === 0) return consequence(webhookNames);
  return [
    `tell ${words(webhookNames, "and")}`,
    reNotifyMinutes ? `again each ${reNotifyMinutes} min until acknowledged` : "",
    notifyOnResolve ? "and when it is over" : "",
  ]
    .filter(Boolean)
    .join("; ");
}

function place({ scope }: Readable): string[] {
  return [
    named("on", "any route", scope?.routes, scope?.notRoutes),
    named("of", "any application", scope?.applications, scope?.notApplications),
  ].filter(Boolean);
}

/** "on a or b except c", "on any route except c". */
function named(at: string, any: string, names?: readonly string[], except?: readonly string[]): string {
  const some = words(names, "or");
  if (!except?.length) return some && `${at} ${some}`;
  return `${at} ${some || any} except ${words(except, "and")}`;
}

function event({ scope, filter }: Readable, many: boolean): string {
  const statuses = filter?.statuses?.length ? filter.statuses : (["FAILED"] as const);
  const verb = statuses.length > 1 ? "end" : statuses[0] === "COMPLETED" ? "complete" : "fail";
  const its = many ? "their" : "its";
  const conditions = [
    named("in", "any environment", scope?.environments, scope?.notEnvironments),
    filter?.errorTypes?.length ? `with ${words(filter.errorTypes, "or")}` : "",
    filter?.notErrorTypes?.length ? `other than with ${words(filter.notErrorTypes, "or")}` : "",
    filter?.errorMessageContains ? `with “${filter.errorMessageContains}” in ${its} error` : "",
    filter?.errorMessageNotContains?.length
      ? `without ${words(filter.errorMessageNotContains.map(quoted), "or")} in ${its} error`
      : "",
    filter?.errorMessageMatches ? `with an error that matches ${filter.errorMessageMatches}` : "",
    filter?.errorMessageNotMatches?.length
      ? `without an error that matches ${words(filter.errorMessageNotMatches, "or")}`
      : "",
    lasting(filter?.minDurationMs, filter?.maxDurationMs),
    ...(filter?.attributes ?? []).map(attribute),
  ];
  return [many ? verb : `${verb}s`, ...conditions.filter(Boolean)].join(" ");
}

function lasting(least: number | undefined, most: number | undefined): string {
  if (least === undefined) return most === undefined ? "" : `after ${milliseconds(most)} or less`;
  return most === undefined
    ? `after ${milliseconds(least)} or more`
    : `after ${milliseconds(least)} to ${milliseconds(most)}`;
}

function milliseconds(count: number): string {
  return count >= 1000 && count % 1000 === 0 ? period(count / 1000) : `${count} ms`;
}

const signs = { GREATER_THAN: ">", AT_LEAST: "≥", LESS_THAN: "<", AT_MOST: "≤" } as const;

export function attribute({ key: name, op, not = false, value = "", values = [] }: AttributeMatch): string {
  const key = name || "an attribute";
  switch (op) {
    case "EXISTS":
      return `${not ? "without" : "with"} ${key}`;
    case "EQUALS":
      return `with ${key} ${not ? "≠" : "="} ${quoted(value)}`;
    case "IN":
      return `with ${key} ${not ? "≠" : "="} ${words(values.map(quoted), not ? "and" : "or") || "…"}`;
    case "MATCHES":
      return `with ${key} that ${not ? "does not match" : "matches"} ${value}`;
    default:
      return `with ${key} ${not ? "not " : ""}${signs[op]} ${value || "…"}`;
  }
}

const quoted = (text: string) => `“${text}”`;

function consequence(webhookNames: readonly string[]): string {
  return webhookNames.length === 0
    ? "show it in the inbox and send no message"
    : `tell ${words(webhookNames, "and")} once`;
}

function words(list: readonly string[] | undefined, last: "and" | "or"): string {
  if (!list?.length) return "";
  if (list.length === 1) return list[0] ?? "";
  return `${list.slice(0, -1).join(", ")} ${last} ${list.at(-1)}`;
}
