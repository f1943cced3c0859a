import type { GroupBy, RuleDefinition } from "../api/client";
import { hoursWords } from "../ui/hours";
import { period } from "../ui/time";
import { counted, listed, number } from "../ui/words";
import { usualStatuses } from "./statuses";

export type AttributeMatch = NonNullable<NonNullable<RuleDefinition["filter"]>["attributes"]>[number];

type Readable = Pick<RuleDefinition, "scope" | "filter"> &
  Partial<
    Pick<
      RuleDefinition,
      | "fireMode"
      | "threshold"
      | "windowSeconds"
      | "percent"
      | "shortWindowSeconds"
      | "percentile"
      | "durationMs"
      | "minVolume"
      | "groupBy"
      | "groupByAttribute"
      | "expected"
      | "learnDays"
      | "calendar"
      | "forDurationSeconds"
      | "reNotifyMinutes"
      | "notifyOnResolve"
      | "resolution"
    >
  >;

/** Who a rule notifies, for {@link sentence}. */
export function recipientNames(
  rule: { webhookIds: readonly string[]; useRoutingPolicy?: boolean },
  nameOf: (id: string) => string,
): readonly string[] {
  return rule.useRoutingPolicy ? ["the recipients of the routing policy"] : rule.webhookIds.map(nameOf);
}

/**
 * Describes a rule in plain words: "Whenever an exchange of orders fails in production, notify #ops
 * once.", "Whenever at least 5 exchanges of orders fail within 10 min on one route, notify #ops;
 * again every 60 min until acknowledged; and when it is over."
 */
export function sentence(rule: Readable & { unreadable?: string }, webhookNames: readonly string[]): string {
  if (rule.unreadable) return "The stored definition of this rule cannot be read.";
  return (rule.fireMode ?? "PER_EXCHANGE") === "PER_EXCHANGE"
    ? `Whenever an exchange ${[...place(rule), event(rule, false)].join(" ")}, ${consequence(webhookNames)}${ending(rule, webhookNames)}.`
    : `Whenever ${overWindow(rule)}, ${reminders(rule, webhookNames)}.`;
}

const within: Record<Exclude<GroupBy, "ATTRIBUTE">, string> = {
  ROUTE: "on one route",
  APPLICATION: "of one application",
  ENVIRONMENT: "in one environment",
  ERROR_TYPE: "with one error type",
};

/** "on one route", "with one value of customer". */
function grouping({ groupBy, groupByAttribute }: Readable): string {
  if (!groupBy) return "";
  return groupBy === "ATTRIBUTE" ? `with one value of ${groupByAttribute || "an attribute"}` : within[groupBy];
}

/** What is compared: "at least 5 exchanges of orders fail", "the p95 of the exchanges that end is 2 s or more". */
function compared(rule: Readable): string[] {
  const { fireMode, threshold = 0, percent = 0, percentile = 95, durationMs = 0 } = rule;
  if (fireMode === "RATIO_IN_WINDOW") {
    return [
      percent > 0 ? `at least ${percent}% of exchanges` : "some percentage of exchanges",
      ...place(rule),
      event(rule, true),
    ];
  }
  if (fireMode === "DURATION_IN_WINDOW") {
    const bound = durationMs > 0 ? `is ${milliseconds(durationMs)} or more` : "is some time or more";
    return [`the p${percentile} duration of exchanges`, ...place(rule), `that ${event(rule, true)}`, bound];
  }
  if (fireMode === "ABSENT_IN_WINDOW") {
    const few =
      threshold === 1
        ? "no exchange"
        : threshold > 0
          ? `fewer than ${counted(threshold, "exchange")}`
          : "too few exchanges";
    return [few, ...place(rule), event(rule, threshold !== 1)];
  }
  const many = threshold !== 1;
  return [
    threshold > 0 ? `at least ${counted(threshold, "exchange")}` : "some number of exchanges",
    ...place(rule),
    event(rule, many),
  ];
}

/** "within 10 min, of at least 20". */
function over({ windowSeconds = 0, shortWindowSeconds = 0, minVolume = 0 }: Readable): string {
  const time = windowSeconds > 0 ? `within ${period(windowSeconds)}` : "within some time";
  return [
    shortWindowSeconds > 0 ? `${time} and within the last ${period(shortWindowSeconds)}` : time,
    minVolume > 1 ? `with at least ${counted(minVolume, "exchange")}` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

/** "of 3 that are listed on Mon to Fri from 08:00 to 18:00 (Europe/Berlin)". */
function expectation({ groupBy, expected = [], learnDays = 0, calendar }: Readable): string {
  const listed = expected.length > 0 ? counted(expected.length, "that is", "that are") : "those that are";
  const members = learnDays > 0 ? `of those seen within ${learnDays} d` : `of ${listed} listed`;
  return [groupBy ? members : "", calendar ? `on ${hoursWords(calendar)}` : ""].filter(Boolean).join(" ");
}

/** What resolves alerts, in words: "after 7 d, or when a later exchange with the same correlation id completes". */
export function resolutionWords({
  afterSeconds = 0,
  evidence,
  attribute,
}: NonNullable<RuleDefinition["resolution"]>): string {
  const time = afterSeconds % 86_400 === 0 ? `${afterSeconds / 86_400} d` : period(afterSeconds);
  const what = evidence === "ATTRIBUTE" ? attribute || "attribute" : "correlation ID";
  const key = evidence === "ATTRIBUTE" ? `of the same route with the same ${what}` : `with the same ${what}`;
  return [afterSeconds > 0 ? `after ${time}` : "", evidence ? `when a later exchange ${key} completes` : ""]
    .filter(Boolean)
    .join(", or ");
}

function ending({ resolution, notifyOnResolve }: Readable, webhookNames: readonly string[]): string {
  const when = resolution ? resolutionWords(resolution) : "";
  if (!when) return "";
  return `; the alert resolves ${when}${notifyOnResolve && webhookNames.length > 0 ? ", with a message" : ""}`;
}

function overWindow(rule: Readable): string {
  const { forDurationSeconds } = rule;
  return [
    ...compared(rule),
    over(rule),
    grouping(rule),
    rule.fireMode === "ABSENT_IN_WINDOW" ? expectation(rule) : "",
    forDurationSeconds ? `and that lasts ${period(forDurationSeconds)}` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

function reminders({ reNotifyMinutes, notifyOnResolve }: Readable, webhookNames: readonly string[]): string {
  if (webhookNames.length === 0) return consequence(webhookNames);
  return [
    `notify ${words(webhookNames, "and")}`,
    reNotifyMinutes ? `again every ${reNotifyMinutes} min until acknowledged` : "",
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

function event({ fireMode, scope, filter }: Readable, many: boolean): string {
  const statuses = filter?.statuses?.length ? filter.statuses : usualStatuses(fireMode);
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
  return count >= 1000 && count % 1000 === 0 ? period(count / 1000) : `${number(count)} ms`;
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
    : `notify ${words(webhookNames, "and")} once`;
}

function words(list: readonly string[] | undefined, last: "and" | "or"): string {
  return listed(list ?? [], last);
}
