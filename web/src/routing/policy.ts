import type {
  AlertMatch,
  EscalationStep,
  RoutingPolicy,
  RoutingPolicyDefinition,
  RoutingRoute,
  RoutingTestRequest,
  Severity,
} from "../api/client";
import { ApiError } from "../api/errors";
import { parseCondition } from "../silences/conditions";

/** The policy in the form in which the page edits it. */
export interface Draft {
  routes: Required<RoutingRoute>[];
  defaultWebhookIds: string[];
  defaultEscalation: EscalationStep[];
}

export function draftOf(policy: Pick<RoutingPolicy, "routes" | "defaultWebhookIds" | "defaultEscalation">): Draft {
  return {
    routes: policy.routes.map(({ name, match = {}, webhookIds = [], escalation = [], continue: on = false }) => ({
      name,
      match,
      webhookIds,
      escalation,
      continue: on,
    })),
    defaultWebhookIds: [...policy.defaultWebhookIds],
    defaultEscalation: [...(policy.defaultEscalation ?? [])],
  };
}

export const definitionOf = (draft: Draft): RoutingPolicyDefinition => ({ ...draft });

export const alike = (a: Draft, b: Draft) => JSON.stringify(a) === JSON.stringify(b);

/** The list with the item at one place moved to another. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  if (to < 0 || to >= list.length) return [...list];
  const rest = list.toSpliced(from, 1);
  return rest.toSpliced(to, 0, ...list.slice(from, from + 1));
}

/** The first error of steps, in the API's words but for the unit; undefined if there is none. */
export function wrongSteps(steps: readonly EscalationStep[]): string | undefined {
  for (const [at, { afterMinutes, webhookIds = [], teams = [] }] of steps.entries()) {
    const after = `Step ${at + 1}, After: Must be`;
    if (afterMinutes < 1) return `${after} at least 1 min`;
    if (afterMinutes > 10_080) return `${after} at most 10080 min`;
    if (afterMinutes <= (steps[at - 1]?.afterMinutes ?? 0))
      return `${after} more than the minutes of the previous step`;
    if (webhookIds.length + teams.length === 0) {
      return `Step ${at + 1}, Notify: Must name at least one webhook or team`;
    }
  }
  return undefined;
}

/** Whether a match has no condition: every alert takes the route. */
export const matchesAll = (match: AlertMatch) => Object.keys(match).length === 0 || isEmpty(match);

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (value !== null && typeof value === "object") return Object.values(value).every(isEmpty);
  return value === undefined || value === "";
}

/** The server's errors about the policy, by the names of its routes. */
export function problemsOf(error: unknown, draft: Draft): string[] {
  if (!(error instanceof ApiError)) return [error instanceof Error ? error.message : String(error)];
  if (error.fields.length === 0) return [error.message];
  return error.fields.map(({ field, message }) => {
    const [, number, rest = ""] = /^routes\[(\d+)\]\.?(.*)$/.exec(field) ?? [];
    if (number === undefined) return `${field}: ${message}`;
    const name = draft.routes[Number(number)]?.name;
    return `Route ${name ? `“${name}”` : Number(number) + 1}, ${rest}: ${message}`;
  });
}

/** The content of the tester's form. */
export interface Question {
  rule: string;
  severity: Severity;
  labels: string;
  application: string;
  route: string;
  environment: string;
  errorType: string;
  errorMessage: string;
  attributes: string;
}

export const noQuestion: Question = {
  rule: "",
  severity: "CRITICAL",
  labels: "",
  application: "",
  route: "",
  environment: "",
  errorType: "",
  errorMessage: "",
  attributes: "",
};

/** Parses `name = value` per line, and returns the lines that are invalid. */
function pairs(text: string): { values: Record<string, string>; wrong: string[] } {
  const values: Record<string, string> = {};
  const wrong: string[] = [];
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const { key, op, not, value } = parseCondition(line) ?? {};
    if (key !== undefined && op === "EQUALS" && !not && value !== undefined) values[key] = value;
    else wrong.push(line.trim());
  }
  return { values, wrong };
}

/** The fields of a question with invalid lines, and their errors. */
export function wrongPairs({ rule, labels, attributes }: Question): { labels?: string; attributes?: string } {
  const wrong = (text: string) => {
    const lines = pairs(text).wrong;
    return lines.length > 0 ? `Cannot be read: ${lines.join("; ")}. Write each line as name = value.` : undefined;
  };
  // The labels of a named rule are known.
  const [ofLabels, ofAttributes] = [rule ? undefined : wrong(labels), wrong(attributes)];
  return { ...(ofLabels ? { labels: ofLabels } : {}), ...(ofAttributes ? { attributes: ofAttributes } : {}) };
}

/** The question in the API's form, with the unsaved policy if there is one. */
export function requestOf(question: Question, draft: Draft | undefined): RoutingTestRequest {
  const { rule, severity, labels, attributes, ...places } = question;
  const exchange = Object.fromEntries(Object.entries(places).filter(([, value]) => value !== ""));
  const named = pairs(attributes).values;
  const labelled = pairs(labels).values;
  return {
    ...(rule ? { ruleId: rule } : { severity, ...(Object.keys(labelled).length > 0 ? { labels: labelled } : {}) }),
    exchange: { ...exchange, ...(Object.keys(named).length > 0 ? { attributes: named } : {}) },
    ...(draft ? { policy: definitionOf(draft) } : {}),
  };
}

const words: Record<string, string> = {
  rules: "the rule",
  severities: "the severity",
  labels: "a label",
  "scope.applications": "the application",
  "scope.notApplications": "the excluded application",
  "scope.routes": "the route of the exchange",
  "scope.notRoutes": "the excluded route of the exchange",
  "scope.environments": "the environment",
  "scope.notEnvironments": "the excluded environment",
  "filter.statuses": "the status",
  "filter.errorTypes": "the error type",
  "filter.notErrorTypes": "the excluded error type",
  "filter.errorMessageContains": "the error message",
  "filter.errorMessageNotContains": "the error message",
  "filter.errorMessageMatches": "the error message",
  "filter.errorMessageNotMatches": "the error message",
  "filter.minDurationMs": "the duration",
  "filter.maxDurationMs": "the duration",
  "filter.attributes": "an attribute",
};

/** What does not match, in words. */
export function unmetWords(unmet: readonly string[]): string {
  const list = unmet.map((path) => words[path.replace(/\[\d+\]$/, "")] ?? path);
  return [...new Set(list)].join(", ");
}
