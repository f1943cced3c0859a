import type { ExplainVerdict } from "../api/client";
import type { ExplainQuery } from "../api/exchanges";

/** The question in the address of the page. */
export function parseExplain(search: Record<string, unknown>): Partial<ExplainQuery> {
  const text = (name: string) => (typeof search[name] === "string" && search[name] !== "" ? search[name] : undefined);
  const executionId = text("executionId");
  if (executionId === undefined) return {};
  const startTime = text("startTime");
  const hours = Number(text("hours") ?? (typeof search.hours === "number" ? search.hours : undefined));
  return {
    executionId,
    ...(startTime ? { startTime } : {}),
    ...(Number.isInteger(hours) && hours >= 1 && hours <= 168 ? { hours } : {}),
  };
}

/** The name of each verdict. */
export const verdictWords: Record<ExplainVerdict, string> = {
  ALERTED: "Alerted",
  COUNTED: "Counted",
  WAITING: "Waiting",
  FAILING: "Rule failing",
  BEYOND_LOOK_BACK: "Visible too late",
  EXPIRED: "Expired",
  NOT_ARMED: "Not armed",
  DISABLED: "Disabled",
  NOT_MATCHED: "No match",
};

const parts: Record<string, string> = {
  environments: "environment",
  notEnvironments: "excluded environment",
  applications: "application",
  notApplications: "excluded application",
  routes: "route",
  notRoutes: "excluded route",
  statuses: "status",
  errorTypes: "error type",
  notErrorTypes: "excluded error type",
  errorMessageContains: "text in the error message",
  errorMessageNotContains: "excluded text in the error message",
  errorMessageMatches: "expression for the error message",
  errorMessageNotMatches: "excluded expression for the error message",
  minDurationMs: "minimum duration",
  maxDurationMs: "maximum duration",
};

/** A part of a condition in words: `scope.notRoutes` is "excluded route", `filter.attributes[1]` "attribute 2". */
export function partWords(field: string): string {
  const [, name = "", index] = /^(?:scope|filter)\.(\w+)(?:\[(\d+)\])?$/.exec(field) ?? [];
  if (name === "attributes" && index !== undefined) return `attribute ${Number(index) + 1}`;
  return parts[name] ?? field;
}
