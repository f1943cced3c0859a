import type { FireMode, GroupBy, Rule, RuleDefinition, Severity } from "../api/client";

export type Attribute = { key: string; op: "EQUALS" | "EXISTS" | "MATCHES"; value: string };

/** What the form holds. The fields of both fire modes are kept, so that changing the mode to and fro loses nothing. */
export type Values = {
  name: string;
  enabled: boolean;
  severity: Severity;
  fireMode: FireMode;
  scope: { environments: string[]; applications: string[]; routes: string[] };
  filter: {
    statuses: ("COMPLETED" | "FAILED")[];
    errorTypes: string[];
    errorMessageContains: string;
    errorMessageMatches: string;
    minDurationMs: number | undefined;
    maxDurationMs: number | undefined;
    attributes: Attribute[];
  };
  threshold: number | undefined;
  windowSeconds: number | undefined;
  groupBy: GroupBy | "";
  forDurationSeconds: number | undefined;
  reNotifyMinutes: number | undefined;
  notifyOnResolve: boolean;
  intervalSeconds: number | undefined;
  lookBackSeconds: number | undefined;
  titleTemplate: string;
  messageTemplate: string;
  targets: { user: string[]; team: string[]; role: string[] };
  webhookIds: string[];
};

export const initialValues: Values = {
  name: "",
  enabled: true,
  severity: "CRITICAL",
  fireMode: "PER_EXCHANGE",
  scope: { environments: [], applications: [], routes: [] },
  filter: {
    statuses: ["FAILED"],
    errorTypes: [],
    errorMessageContains: "",
    errorMessageMatches: "",
    minDurationMs: undefined,
    maxDurationMs: undefined,
    attributes: [],
  },
  threshold: 5,
  windowSeconds: 600,
  groupBy: "",
  forDurationSeconds: 0,
  reNotifyMinutes: 0,
  notifyOnResolve: true,
  intervalSeconds: 1,
  lookBackSeconds: 3600,
  titleTemplate: "",
  messageTemplate: "",
  targets: { user: [], team: [], role: [] },
  webhookIds: [],
};

const common = [
  "name",
  "enabled",
  "severity",
  "fireMode",
  "scope.environments",
  "scope.applications",
  "scope.routes",
  "filter.statuses",
  "filter.errorTypes",
  "filter.errorMessageContains",
  "filter.errorMessageMatches",
  "filter.minDurationMs",
  "filter.maxDurationMs",
  "filter.attributes",
  "intervalSeconds",
  "titleTemplate",
  "messageTemplate",
  "targets",
  "webhookIds",
] as const;

/** The fields that only rules of a fire mode have. */
export const onlyIn = {
  PER_EXCHANGE: ["lookBackSeconds"],
  COUNT_IN_WINDOW: [
    "threshold",
    "windowSeconds",
    "groupBy",
    "forDurationSeconds",
    "reNotifyMinutes",
    "notifyOnResolve",
  ],
} as const;

/** The fields that the form shows, by the names that the API gives them. */
export function fieldsOf({ fireMode, filter }: Pick<Values, "fireMode" | "filter">): readonly string[] {
  const attributes = filter.attributes.flatMap((_, index) =>
    ["key", "op", "value"].map((part) => `filter.attributes[${index}].${part}`),
  );
  return [...common, ...attributes, ...onlyIn[fireMode]];
}

/**
 * What the form holds, as the API wants it: what is empty, or does not apply, is left out. Whether it makes sense, the
 * API says.
 */
export function definition(values: Values): RuleDefinition {
  const { name, enabled, severity, fireMode, scope, titleTemplate, messageTemplate, webhookIds } = values;
  return {
    name,
    enabled,
    severity,
    fireMode,
    scope,
    filter: filterOf(values.filter),
    ...given("intervalSeconds", values.intervalSeconds),
    ...(fireMode === "COUNT_IN_WINDOW" ? countOf(values) : given("lookBackSeconds", values.lookBackSeconds)),
    titleTemplate,
    messageTemplate,
    targets: (["user", "team", "role"] as const).flatMap((kind) =>
      values.targets[kind].map((n) => ({ kind, name: n })),
    ),
    webhookIds,
  };
}

function given<K extends string>(name: K, value: number | undefined): Partial<Record<K, number>> {
  return value === undefined ? {} : ({ [name]: value } as Record<K, number>);
}

function filterOf(filter: Values["filter"]): NonNullable<RuleDefinition["filter"]> {
  const { statuses, errorTypes, errorMessageContains, errorMessageMatches, attributes } = filter;
  return {
    ...(statuses.length ? { statuses } : {}),
    ...(errorTypes.length ? { errorTypes } : {}),
    ...(errorMessageContains ? { errorMessageContains } : {}),
    ...(errorMessageMatches ? { errorMessageMatches } : {}),
    ...given("minDurationMs", filter.minDurationMs),
    ...given("maxDurationMs", filter.maxDurationMs),
    ...(attributes.length
      ? { attributes: attributes.map(({ key, op, value }) => (op === "EXISTS" ? { key, op } : { key, op, value })) }
      : {}),
  };
}

function countOf(values: Values) {
  const { threshold, windowSeconds, groupBy, forDurationSeconds, reNotifyMinutes, notifyOnResolve } = values;
  return {
    ...given("threshold", threshold),
    ...given("windowSeconds", windowSeconds),
    ...(groupBy ? { groupBy } : {}),
    forDurationSeconds: forDurationSeconds ?? 0,
    reNotifyMinutes: reNotifyMinutes ?? 0,
    notifyOnResolve,
  };
}

/** What the form shows of a rule. The fields of the other fire mode start as in a new rule. */
export function valuesOf(rule: Rule): Values {
  const { scope, filter } = rule;
  const named = (kind: "user" | "team" | "role") =>
    rule.targets.filter((target) => target.kind === kind).map((target) => target.name);
  const counts = rule.fireMode === "COUNT_IN_WINDOW";
  return {
    ...initialValues,
    name: rule.name,
    enabled: rule.enabled,
    severity: rule.severity,
    fireMode: rule.fireMode,
    scope: {
      environments: scope.environments ?? [],
      applications: scope.applications ?? [],
      routes: scope.routes ?? [],
    },
    filter: {
      // None means FAILED; the form says so.
      statuses: filter.statuses?.length ? filter.statuses : ["FAILED"],
      errorTypes: filter.errorTypes ?? [],
      errorMessageContains: filter.errorMessageContains ?? "",
      errorMessageMatches: filter.errorMessageMatches ?? "",
      minDurationMs: filter.minDurationMs,
      maxDurationMs: filter.maxDurationMs,
      attributes: (filter.attributes ?? []).map(({ key, op, value = "" }) => ({ key, op, value })),
    },
    intervalSeconds: rule.intervalSeconds,
    titleTemplate: rule.titleTemplate,
    messageTemplate: rule.messageTemplate,
    targets: { user: named("user"), team: named("team"), role: named("role") },
    webhookIds: rule.webhookIds,
    ...(counts
      ? {
          threshold: rule.threshold,
          windowSeconds: rule.windowSeconds,
          groupBy: rule.groupBy ?? "",
          forDurationSeconds: rule.forDurationSeconds,
          reNotifyMinutes: rule.reNotifyMinutes,
          notifyOnResolve: rule.notifyOnResolve,
        }
      : { lookBackSeconds: rule.lookBackSeconds }),
  };
}

/** Whether two forms say the same to the API. */
export function same(a: Values, b: Values): boolean {
  return JSON.stringify(definition(a)) === JSON.stringify(definition(b));
}

/** The texts that the API writes where a rule has none of its own. */
export function defaultTexts({ fireMode, groupBy }: Pick<Values, "fireMode" | "groupBy">) {
  if (fireMode === "PER_EXCHANGE") {
    return {
      title: "{{exchange.application}} · {{exchange.route}}: {{exchange.status}}",
      message: "{{exchange.errorType}}: {{exchange.errorMessage}}",
    };
  }
  return {
    title: `${groupBy ? "{{count.group}}: " : ""}{{count.observed}} exchanges within {{count.window}}`,
    message:
      "At least {{count.threshold}} match. The newest: {{exchange.application}} · {{exchange.route}}: {{exchange.errorMessage}}",
  };
}
