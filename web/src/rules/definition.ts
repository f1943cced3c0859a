import type { RuleDefinition } from "../api/client";
import { type Attribute, type AttributeMatch, type ScopeValues, scopeLists, type Values } from "./values";

const common = [
  "name",
  "enabled",
  "severity",
  "fireMode",
  "scope.environments",
  "scope.notEnvironments",
  "scope.applications",
  "scope.notApplications",
  "scope.routes",
  "scope.notRoutes",
  "filter.statuses",
  "filter.errorTypes",
  "filter.notErrorTypes",
  "filter.errorMessageContains",
  "filter.errorMessageNotContains",
  "filter.errorMessageMatches",
  "filter.errorMessageNotMatches",
  "filter.minDurationMs",
  "filter.maxDurationMs",
  "filter.attributes",
  "intervalSeconds",
  "titleTemplate",
  "messageTemplate",
  "targets",
  "webhookIds",
  "useRoutingPolicy",
  "owner",
  "runbookUrl",
  "labels",
  "note",
] as const;

/** The fields of every window rule. */
const windowed = [
  ...["windowSeconds", "groupBy", "groupByAttribute"],
  ...["forDurationSeconds", "reNotifyMinutes", "notifyOnResolve"],
] as const;

/** For each fire mode, the fields that not all modes have. */
export const onlyIn = {
  PER_EXCHANGE: ["lookBackSeconds", "resolution", "notifyOnResolve"],
  COUNT_IN_WINDOW: ["threshold", ...windowed],
  RATIO_IN_WINDOW: ["percent", "minVolume", "shortWindowSeconds", ...windowed],
  DURATION_IN_WINDOW: ["percentile", "durationMs", "minVolume", ...windowed],
  ABSENT_IN_WINDOW: ["threshold", "expected", "learnDays", "calendar", ...windowed],
} as const;

const resolutionFields = ["resolution.afterSeconds", "resolution.evidence", "resolution.attribute"];
const calendarFields = ["calendar.timeZone", "calendar.weekdays", "calendar.from", "calendar.to"];

/** The fields that the form shows, by their names in the API. */
export function fieldsOf({
  fireMode,
  filter,
  resolution,
}: Pick<Values, "fireMode" | "filter"> & Partial<Pick<Values, "resolution">>): readonly string[] {
  const attributes = filter.attributes.flatMap((_, index) =>
    ["key", "op", "value", "values"].map((part) => `filter.attributes[${index}].${part}`),
  );
  const hours = fireMode === "ABSENT_IN_WINDOW" ? calendarFields : [];
  const resolved = fireMode === "PER_EXCHANGE" && resolution ? resolutionFields : [];
  return [...common, ...attributes, ...onlyIn[fireMode], ...hours, ...resolved];
}

/**
 * The content of the form in the API's format, without fields that are empty or do not apply. The
 * API checks whether it makes sense.
 */
export function definition(values: Values): RuleDefinition {
  const { name, enabled, severity, fireMode, scope, titleTemplate, messageTemplate, webhookIds } = values;
  return {
    name,
    enabled,
    severity,
    fireMode,
    scope: scopeOf(scope),
    filter: filterOf(values.filter),
    ...given("intervalSeconds", values.intervalSeconds),
    ...(fireMode === "PER_EXCHANGE"
      ? { ...given("lookBackSeconds", values.lookBackSeconds), ...resolutionOf(values) }
      : windowOf(values)),
    titleTemplate,
    messageTemplate,
    targets: (["user", "team", "role"] as const).flatMap((kind) =>
      values.targets[kind].map((n) => ({ kind, name: n })),
    ),
    webhookIds: values.useRoutingPolicy ? [] : webhookIds,
    ...(values.useRoutingPolicy ? { useRoutingPolicy: true } : {}),
    ...Object.fromEntries(details.filter((field) => values[field] !== "").map((field) => [field, values[field]])),
    ...(values.labels.length ? { labels: labelsOf(values.labels) } : {}),
  };
}

const details = ["owner", "runbookUrl", "note"] as const;

/** Labels by name. A text without = is a name without a value, which the API refuses. */
function labelsOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [name = "", ...value] = text.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
}

function given<K extends string>(name: K, value: number | undefined): Partial<Record<K, number>> {
  return value === undefined ? {} : ({ [name]: value } as Record<K, number>);
}

function scopeOf(scope: ScopeValues): NonNullable<RuleDefinition["scope"]> {
  return Object.fromEntries(scopeLists.filter((list) => scope[list].length > 0).map((list) => [list, scope[list]]));
}

/** The parts of a filter that are texts or lists of texts, and are absent if they are empty. */
const texts = [
  "errorTypes",
  "notErrorTypes",
  "errorMessageContains",
  "errorMessageNotContains",
  "errorMessageMatches",
  "errorMessageNotMatches",
] as const;

function filterOf(filter: Values["filter"]): NonNullable<RuleDefinition["filter"]> {
  const { statuses, attributes } = filter;
  return {
    ...(statuses.length ? { statuses } : {}),
    ...Object.fromEntries(texts.filter((part) => filter[part].length > 0).map((part) => [part, filter[part]])),
    ...given("minDurationMs", filter.minDurationMs),
    ...given("maxDurationMs", filter.maxDurationMs),
    ...(attributes.length ? { attributes: attributes.map(attributeOf) } : {}),
  };
}

function attributeOf({ key, not, op, value, values }: Attribute): AttributeMatch {
  const compared = op === "EXISTS" ? {} : op === "IN" ? { values } : { value };
  return { key, ...(not ? { not } : {}), op, ...compared };
}

/** What a window rule compares. */
function measureOf(values: Values): Partial<RuleDefinition> {
  const volume = given("minVolume", values.minVolume);
  switch (values.fireMode) {
    case "RATIO_IN_WINDOW":
      return {
        ...given("percent", values.percent),
        ...volume,
        ...given("shortWindowSeconds", values.shortWindowSeconds || undefined),
      };
    case "DURATION_IN_WINDOW":
      return { percentile: values.percentile, ...given("durationMs", values.durationMs), ...volume };
    case "ABSENT_IN_WINDOW":
      return { ...given("threshold", values.threshold), ...expectationOf(values) };
    default:
      return given("threshold", values.threshold);
  }
}

/** What a rule on absence expects. Without groups, all exchanges together are expected. */
function expectationOf({ groupBy, expected, learnDays, calendar }: Values): Partial<RuleDefinition> {
  const members = learnDays === 0 ? { expected } : given("learnDays", learnDays);
  return { ...(groupBy ? members : {}), ...(calendar ? { calendar } : {}) };
}

/** What resolves alerts in addition to people, and whether people are notified of that. */
function resolutionOf({ resolution, notifyOnResolve }: Values): Partial<RuleDefinition> {
  if (!resolution) return {};
  const { afterSeconds, evidence, attribute } = resolution;
  return {
    resolution: {
      ...given("afterSeconds", afterSeconds || undefined),
      ...(evidence ? { evidence } : {}),
      ...(evidence === "ATTRIBUTE" ? { attribute } : {}),
    },
    notifyOnResolve,
  };
}

function windowOf(values: Values) {
  const { windowSeconds, groupBy, groupByAttribute, forDurationSeconds, reNotifyMinutes, notifyOnResolve } = values;
  return {
    ...measureOf(values),
    ...given("windowSeconds", windowSeconds),
    ...(groupBy ? { groupBy } : {}),
    ...(groupBy === "ATTRIBUTE" ? { groupByAttribute } : {}),
    forDurationSeconds: forDurationSeconds ?? 0,
    reNotifyMinutes: reNotifyMinutes ?? 0,
    notifyOnResolve,
  };
}

/** Whether two forms mean the same to the API. */
export function same(a: Values, b: Values): boolean {
  return JSON.stringify(definition(a)) === JSON.stringify(definition(b));
}

/** The API's default texts for a rule without its own. */
export function defaultTexts({ fireMode, groupBy }: Pick<Values, "fireMode" | "groupBy">) {
  if (fireMode === "PER_EXCHANGE") {
    return {
      title: "{{exchange.application}} · {{exchange.route}}: {{exchange.status}}",
      message: "{{exchange.errorType}}: {{exchange.errorMessage}}",
    };
  }
  const group = groupBy ? "{{count.group}}: " : "";
  if (fireMode === "DURATION_IN_WINDOW") {
    return {
      title: `${group}p{{count.percentile}} is {{count.value}} over {{count.volume}} exchanges within {{count.window}}`,
      message:
        "The threshold of {{count.threshold}} within {{count.window}} was reached. Newest slow exchange: {{exchange.application}} · {{exchange.route}}: {{exchange.status}} after {{exchange.duration}}",
    };
  }
  if (fireMode === "ABSENT_IN_WINDOW") {
    return {
      title: `${group}{{count.observed}} exchanges within {{count.window}}, fewer than {{count.threshold}}`,
      message: "Expected: at least {{count.threshold}} within {{count.window}}.",
    };
  }
  const counted =
    fireMode === "RATIO_IN_WINDOW"
      ? "{{count.value}} of {{count.volume}} exchanges match within {{count.window}}"
      : "{{count.observed}} exchanges within {{count.window}}";
  return {
    title: `${group}${counted}`,
    message:
      "The threshold of {{count.threshold}} within {{count.window}} was reached. Newest exchange: {{exchange.application}} · {{exchange.route}}: {{exchange.errorMessage}}",
  };
}
