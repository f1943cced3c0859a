import type { AlertFilter, Fold } from "../api/alerts";
import type { AlertState, Severity } from "../api/client";

/** How the address bar writes a filter: what is at its default is left out. */
export interface InboxSearch {
  state?: "acknowledged" | "resolved" | "pending";
  severity?: string[];
  app?: string[];
  rule?: string[];
  /** What exchanges failed with; `none` where they did not, and `~none` where they failed with something of that name. */
  error?: string[];
  q?: string;
  mine?: "yes";
  unread?: "yes";
  fold?: "rule" | "error";
}

const noError = "none";

function errorOf(signature: string): string {
  return /^~*none$/.test(signature) ? `~${signature}` : signature || noError;
}

function signatureOf(error: string): string {
  return error === noError ? "" : error.replace(/^~(?=~*none$)/, "");
}

export const states: readonly AlertState[] = ["FIRING", "ACKNOWLEDGED", "RESOLVED", "PENDING"];
export const severities: readonly Severity[] = ["CRITICAL", "WARNING", "INFO"];

/** The name of a state among the counts. */
export const countedAs = {
  PENDING: "pending",
  FIRING: "firing",
  ACKNOWLEDGED: "acknowledged",
  RESOLVED: "resolved",
} as const;

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
  const error = texts(raw.error);
  if (error.length > 0) search.error = error;
  if (raw.mine === "yes") search.mine = "yes";
  if (raw.unread === "yes") search.unread = "yes";
  if (raw.fold === "rule" || raw.fold === "error") search.fold = raw.fold;
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
    signature: (search.error ?? []).map(signatureOf),
    q: search.q ?? "",
    mine: search.mine !== undefined,
    unread: search.unread !== undefined,
  };
}

export function toFold(search: InboxSearch): Fold | undefined {
  return search.fold === "error" ? "signature" : search.fold;
}

export function toSearch(filter: AlertFilter, fold?: Fold): InboxSearch {
  return parseSearch({
    state: filter.state,
    severity: filter.severity.map((s) => s.toLowerCase()),
    app: filter.application,
    rule: filter.ruleId,
    error: filter.signature.map(errorOf),
    q: filter.q,
    mine: filter.mine ? "yes" : undefined,
    unread: filter.unread ? "yes" : undefined,
    fold: fold === "signature" ? "error" : fold,
  });
}

/** The filter that narrows by nothing but the state. */
export function wide(state: AlertState): AlertFilter {
  return { state, severity: [], application: [], ruleId: [], signature: [], q: "", mine: false, unread: false };
}

/** Whether anything but the state narrows the list. */
export function isNarrowed({ severity, application, ruleId, signature, q, mine, unread }: AlertFilter): boolean {
  return severity.length + application.length + ruleId.length + signature.length > 0 || q !== "" || mine || unread;
}

function texts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return [...new Set(list.filter((item): item is string => typeof item === "string" && item !== ""))];
}
