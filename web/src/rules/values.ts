import type { FireMode, GroupBy, Rule, RuleDefinition, Severity } from "../api/client";
import { zoneName } from "../ui/time";
import { usualStatuses } from "./statuses";

export type Calendar = NonNullable<RuleDefinition["calendar"]>;

type Evidence = NonNullable<NonNullable<RuleDefinition["resolution"]>["evidence"]>;

/** All parts are stored, so that switching between kinds of evidence loses nothing. */
export type Resolution = { afterSeconds: number | undefined; evidence: Evidence | ""; attribute: string };

export type AttributeMatch = NonNullable<NonNullable<RuleDefinition["filter"]>["attributes"]>[number];

/** The value and the list are both stored, so that switching the comparison loses neither. */
export type Attribute = { key: string; not: boolean; op: AttributeMatch["op"]; value: string; values: string[] };

/** The lists of names of a scope. */
export const scopeLists = [
  "environments",
  "notEnvironments",
  "applications",
  "notApplications",
  "routes",
  "notRoutes",
] as const;

export type ScopeValues = Record<(typeof scopeLists)[number], string[]>;

/** The content of the form. The fields of all fire modes are stored, so that switching the mode loses nothing. */
export type Values = {
  name: string;
  enabled: boolean;
  severity: Severity;
  fireMode: FireMode;
  scope: ScopeValues;
  filter: {
    statuses: ("COMPLETED" | "FAILED")[];
    errorTypes: string[];
    notErrorTypes: string[];
    errorMessageContains: string;
    errorMessageNotContains: string[];
    errorMessageMatches: string;
    errorMessageNotMatches: string[];
    minDurationMs: number | undefined;
    maxDurationMs: number | undefined;
    attributes: Attribute[];
  };
  threshold: number | undefined;
  percent: number | undefined;
  percentile: number;
  durationMs: number | undefined;
  minVolume: number | undefined;
  windowSeconds: number | undefined;
  shortWindowSeconds: number | undefined;
  groupBy: GroupBy | "";
  groupByAttribute: string;
  expected: string[];
  /** 0 means that expected groups are listed. */
  learnDays: number | undefined;
  /** Absent means always. */
  calendar: Calendar | undefined;
  forDurationSeconds: number | undefined;
  reNotifyMinutes: number | undefined;
  notifyOnResolve: boolean;
  /** Absent means that only people resolve alerts. */
  resolution: Resolution | undefined;
  intervalSeconds: number | undefined;
  lookBackSeconds: number | undefined;
  titleTemplate: string;
  messageTemplate: string;
  targets: { user: string[]; team: string[]; role: string[] };
  webhookIds: string[];
  /** The routing policy decides who is notified; then the webhooks do not apply. */
  useRoutingPolicy: boolean;
  owner: string;
  runbookUrl: string;
  /** Each as name=value. */
  labels: string[];
  note: string;
};

export const initialValues: Values = {
  name: "",
  enabled: true,
  severity: "CRITICAL",
  fireMode: "PER_EXCHANGE",
  scope: {
    environments: [],
    notEnvironments: [],
    applications: [],
    notApplications: [],
    routes: [],
    notRoutes: [],
  },
  filter: {
    statuses: ["FAILED"],
    errorTypes: [],
    notErrorTypes: [],
    errorMessageContains: "",
    errorMessageNotContains: [],
    errorMessageMatches: "",
    errorMessageNotMatches: [],
    minDurationMs: undefined,
    maxDurationMs: undefined,
    attributes: [],
  },
  threshold: 5,
  percent: 10,
  percentile: 95,
  durationMs: 2000,
  minVolume: 20,
  windowSeconds: 600,
  shortWindowSeconds: 0,
  groupBy: "",
  groupByAttribute: "",
  expected: [],
  learnDays: 7,
  calendar: undefined,
  forDurationSeconds: 0,
  reNotifyMinutes: 0,
  notifyOnResolve: true,
  resolution: undefined,
  intervalSeconds: 1,
  lookBackSeconds: 3600,
  titleTemplate: "",
  messageTemplate: "",
  targets: { user: [], team: [], role: [] },
  webhookIds: [],
  useRoutingPolicy: false,
  owner: "",
  runbookUrl: "",
  labels: [],
  note: "",
};

/** Working hours in the person's time zone. */
export const initialCalendar = (): Calendar => ({
  timeZone: zoneName(),
  weekdays: ["MON", "TUE", "WED", "THU", "FRI"],
  from: "08:00",
  to: "18:00",
});

export const initialResolution: Resolution = { afterSeconds: 7 * 86_400, evidence: "", attribute: "" };

export const initialAttribute: Attribute = { key: "", not: false, op: "EQUALS", value: "", values: [] };

/** The content of the form for a rule. The fields of the other fire modes start as in a new rule. */
export function valuesOf(rule: Rule): Values {
  const { scope, filter } = rule;
  const named = (kind: "user" | "team" | "role") =>
    rule.targets.filter((target) => target.kind === kind).map((target) => target.name);
  return {
    ...initialValues,
    name: rule.name,
    enabled: rule.enabled,
    severity: rule.severity,
    fireMode: rule.fireMode,
    scope: { ...initialValues.scope, ...scope },
    filter: {
      statuses: filter.statuses?.length ? filter.statuses : usualStatuses(rule.fireMode),
      errorTypes: filter.errorTypes ?? [],
      notErrorTypes: filter.notErrorTypes ?? [],
      errorMessageContains: filter.errorMessageContains ?? "",
      errorMessageNotContains: filter.errorMessageNotContains ?? [],
      errorMessageMatches: filter.errorMessageMatches ?? "",
      errorMessageNotMatches: filter.errorMessageNotMatches ?? [],
      minDurationMs: filter.minDurationMs,
      maxDurationMs: filter.maxDurationMs,
      attributes: (filter.attributes ?? []).map((match) => ({ ...initialAttribute, ...match })),
    },
    intervalSeconds: rule.intervalSeconds,
    titleTemplate: rule.titleTemplate,
    messageTemplate: rule.messageTemplate,
    targets: { user: named("user"), team: named("team"), role: named("role") },
    webhookIds: rule.webhookIds,
    useRoutingPolicy: rule.useRoutingPolicy ?? false,
    owner: rule.owner ?? "",
    runbookUrl: rule.runbookUrl ?? "",
    labels: labelTexts(rule.labels),
    note: rule.note ?? "",
    ...(rule.fireMode === "PER_EXCHANGE"
      ? { lookBackSeconds: rule.lookBackSeconds, ...resolvedBy(rule) }
      : {
          ...measuredBy(rule),
          windowSeconds: rule.windowSeconds,
          groupBy: rule.groupBy ?? "",
          groupByAttribute: rule.groupByAttribute ?? "",
          forDurationSeconds: rule.forDurationSeconds,
          reNotifyMinutes: rule.reNotifyMinutes,
          notifyOnResolve: rule.notifyOnResolve,
        }),
  };
}

/** The content of the form for the resolution of a rule. */
function resolvedBy({ resolution, notifyOnResolve }: Rule): Partial<Values> {
  if (!resolution) return {};
  const { afterSeconds = 0, evidence = "", attribute = "" } = resolution;
  return { resolution: { afterSeconds, evidence, attribute }, notifyOnResolve };
}

/** The content of the form for what a rule compares. */
function measuredBy(rule: Rule): Partial<Values> {
  switch (rule.fireMode) {
    case "RATIO_IN_WINDOW":
      return {
        percent: rule.percent,
        minVolume: rule.minVolume,
        shortWindowSeconds: rule.shortWindowSeconds ?? 0,
      };
    case "DURATION_IN_WINDOW":
      return { percentile: rule.percentile ?? 95, durationMs: rule.durationMs, minVolume: rule.minVolume };
    case "ABSENT_IN_WINDOW":
      return {
        threshold: rule.threshold,
        expected: rule.expected ?? [],
        learnDays: rule.expected?.length ? 0 : (rule.learnDays ?? initialValues.learnDays),
        calendar: rule.calendar,
      };
    default:
      return { threshold: rule.threshold };
  }
}

/** Labels in the form's format. */
export function labelTexts(labels: Record<string, string> | undefined): string[] {
  return Object.entries(labels ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .sort();
}
