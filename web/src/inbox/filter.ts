import type { AlertFilter } from "../api/alerts";
import type { AlertState, Severity } from "../api/client";

/** How the address bar writes a filter: what is at its default is left out. */
export interface InboxSearch {
  state?: "acknowledged" | "resolved" | "pending";
  severity?: string[];
  app?: string[];
  rule?: string[];
  q?: string;
}

export const states: readonly AlertState[] = ["FIRING", "ACKNOWLEDGED", "RESOLVED", "PENDING"];
export const severities: readonly Severity[] = ["CRITICAL", "WARNING", "INFO"];

const longestText = 200;

/** Reads an address that anybody may have typed: what makes no sense is left out, not an error. */
export function parseSearch(raw: Record<string, unknown>): InboxSearch {
  const search: InboxSearch = {};
  const state = texts(raw.state)[0]?.toLowerCase();
  if (state === "acknowledged" || state === "resolved" || state === "pending") search.state = state;
  const severity = texts(raw.severity).filter((s) => severities.some((known) => known.toLowerCase() === s));
  if (severity.length > 0) search.severity = severity;
  const app = texts(raw.app);
  if (app.length > 0) search.app = app;
  const rule = texts(raw.rule);
  if (rule.length > 0) search.rule = rule;
  const q = texts(raw.q)[0]?.slice(0, longestText);
  if (q) search.q = q;
  return search;
}

export function toFilter(search: InboxSearch): AlertFilter {
  return {
    state: search.state === undefined ? "FIRING" : (search.state.toUpperCase() as AlertState),
    severity: severities.filter((s) => search.severity?.includes(s.toLowerCase())),
    application: search.app ?? [],
    ruleId: search.rule ?? [],
    q: search.q ?? "",
  };
}

export function toSearch(filter: AlertFilter): InboxSearch {
  return parseSearch({
    state: filter.state,
    severity: filter.severity.map((s) => s.toLowerCase()),
    app: filter.application,
    rule: filter.ruleId,
    q: filter.q,
  });
}

/** Whether anything but the state narrows the list. */
export function isNarrowed(filter: AlertFilter): boolean {
  return filter.severity.length + filter.application.length + filter.ruleId.length > 0 || filter.q !== "";
}

function texts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return [...new Set(list.filter((item): item is string => typeof item === "string" && item !== ""))];
}
