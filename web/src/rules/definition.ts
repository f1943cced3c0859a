import type { FireMode, GroupBy, RuleDefinition, Severity } from "../api/client";

/** What the form holds. The fields of both fire modes are kept, so that changing the mode to and fro loses nothing. */
export type Values = {
  name: string;
  severity: Severity;
  fireMode: FireMode;
  scope: { environments: string[]; applications: string[]; routes: string[] };
  filter: { statuses: ("COMPLETED" | "FAILED")[]; errorMessageContains: string };
  threshold: number | undefined;
  windowSeconds: number | undefined;
  groupBy: GroupBy | "";
  forDurationSeconds: number | undefined;
  reNotifyMinutes: number | undefined;
  notifyOnResolve: boolean;
  titleTemplate: string;
  messageTemplate: string;
  webhookIds: string[];
};

export const initialValues: Values = {
  name: "",
  severity: "CRITICAL",
  fireMode: "PER_EXCHANGE",
  scope: { environments: [], applications: [], routes: [] },
  filter: { statuses: ["FAILED"], errorMessageContains: "" },
  threshold: 5,
  windowSeconds: 600,
  groupBy: "",
  forDurationSeconds: 0,
  reNotifyMinutes: 0,
  notifyOnResolve: true,
  titleTemplate: "",
  messageTemplate: "",
  webhookIds: [],
};

const common = [
  "name",
  "severity",
  "fireMode",
  "scope.environments",
  "scope.applications",
  "scope.routes",
  "filter.statuses",
  "filter.errorMessageContains",
  "titleTemplate",
  "messageTemplate",
  "webhookIds",
] as const;

const counting = [
  "threshold",
  "windowSeconds",
  "groupBy",
  "forDurationSeconds",
  "reNotifyMinutes",
  "notifyOnResolve",
] as const;

/** The fields that the form shows, by the names that the API gives them. */
export function fieldsOf(mode: FireMode): readonly string[] {
  return mode === "COUNT_IN_WINDOW" ? [...common, ...counting] : common;
}

/**
 * What the form holds, as the API wants it: what is empty, or does not apply, is left out. Whether it makes sense, the
 * API says.
 */
export function definition(values: Values): RuleDefinition {
  const { name, severity, fireMode, scope, titleTemplate, messageTemplate, webhookIds } = values;
  const { errorMessageContains, statuses } = values.filter;
  return {
    name,
    severity,
    fireMode,
    scope,
    filter: { ...(statuses.length ? { statuses } : {}), ...(errorMessageContains ? { errorMessageContains } : {}) },
    ...(fireMode === "COUNT_IN_WINDOW" ? countOf(values) : {}),
    titleTemplate,
    messageTemplate,
    webhookIds,
  };
}

function countOf(values: Values) {
  const { threshold, windowSeconds, groupBy, forDurationSeconds, reNotifyMinutes, notifyOnResolve } = values;
  return {
    ...(threshold === undefined ? {} : { threshold }),
    ...(windowSeconds === undefined ? {} : { windowSeconds }),
    ...(groupBy ? { groupBy } : {}),
    forDurationSeconds: forDurationSeconds ?? 0,
    reNotifyMinutes: reNotifyMinutes ?? 0,
    notifyOnResolve,
  };
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
