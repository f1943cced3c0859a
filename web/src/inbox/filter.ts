import type { AlertFilter, Fold } from "../api/alerts";
import type { AlertState, Severity } from "../api/client";

/** How the list is folded; `none` shows each alert in its own row. */
export type Folding = Fold | "none";

/** The form of a filter in the address: defaults are left out. */
export interface InboxSearch {
  state?: "acknowledged" | "resolved" | "pending";
  severity?: string[];
  app?: string[];
  route?: string[];
  rule?: string[];
  /** The errors of the exchanges; `none` for exchanges without an error, and `~none` for an error with that name. */
  error?: string[];
  env?: string[];
  execution?: string;
  correlation?: string;
  attr?: string[];
  within?: string;
  from?: string;
  to?: string;
  q?: string;
  mine?: "yes";
  /** Who alerts are assigned to; `none` means nobody. */
  assignee?: string[];
  snoozed?: "yes" | "no";
  unread?: "yes";
  per?: "exchange";
  fold?: "none" | "rule" | "error";
}

const noError = "none";

/** A signature, or the name of an assignee, in the form of the address. */
export function errorOf(signature: string): string {
  return /^~*none$/.test(signature) ? `~${signature}` : signature || noError;
}

export function signatureOf(error: string): string {
  return error === noError ? "" : error.replace(/^~(?=~*none$)/, "");
}

export const states: readonly AlertState[] = ["FIRING", "ACKNOWLEDGED", "RESOLVED", "PENDING"];
export const severities: readonly Severity[] = ["CRITICAL", "WARNING", "INFO"];

/** The name of a state in the counts. */
export const countedAs = {
  PENDING: "pending",
  FIRING: "firing",
  ACKNOWLEDGED: "acknowledged",
  RESOLVED: "resolved",
} as const;

/** How far back to look, by the word in the address. */
export const spans: readonly { value: string; label: string; hours: number }[] = [
  { value: "", label: "Any time", hours: 0 },
  { value: "1h", label: "Last hour", hours: 1 },
  { value: "24h", label: "Last 24 hours", hours: 24 },
  { value: "7d", label: "Last 7 days", hours: 7 * 24 },
  { value: "30d", label: "Last 30 days", hours: 30 * 24 },
];

const longestText = 200;
const longestName = 1024;

/** The parts that are lists, by their names in the address and in the filter. */
const lists = [
  ["app", "application"],
  ["route", "route"],
  ["rule", "ruleId"],
  ["env", "environment"],
] as const;

/** Parses an address that may have been typed: invalid parts are ignored and are no error. */
export function parseSearch(raw: Record<string, unknown>): InboxSearch {
  const search: InboxSearch = {};
  const state = texts(raw.state)[0]?.toLowerCase();
  if (state === "acknowledged" || state === "resolved" || state === "pending") search.state = state;
  const severity = texts(raw.severity).filter((s) => severities.some((known) => known.toLowerCase() === s));
  if (severity.length > 0) search.severity = severity;
  for (const [name] of lists) {
    const values = texts(raw[name]);
    if (values.length > 0) search[name] = values;
  }
  const error = texts(raw.error);
  if (error.length > 0) search.error = error;
  const assignee = texts(raw.assignee);
  if (assignee.length > 0) search.assignee = assignee;
  if (raw.snoozed === "yes" || raw.snoozed === "no") search.snoozed = raw.snoozed;
  const attr = texts(raw.attr).filter(isAttribute);
  if (attr.length > 0) search.attr = attr;
  for (const name of ["execution", "correlation"] as const) {
    const value = texts(raw[name])[0]?.slice(0, longestName);
    if (value) search[name] = value;
  }
  const within = texts(raw.within)[0];
  if (within && spans.some(({ value }) => value === within)) search.within = within;
  for (const name of ["from", "to"] as const) {
    const at = instant(texts(raw[name])[0]);
    if (at) search[name] = at;
  }
  if (raw.mine === "yes") search.mine = "yes";
  if (raw.unread === "yes") search.unread = "yes";
  if (raw.per === "exchange") search.per = "exchange";
  if (raw.fold === "rule" || raw.fold === "error" || raw.fold === "none") search.fold = raw.fold;
  const q = texts(raw.q)[0]?.slice(0, longestText);
  if (q) search.q = q;
  return search;
}

/** Whether a text is an attribute in the API's form: a key, an equals sign and a value. */
export const isAttribute = (text: string): boolean => text.indexOf("=") > 0;

/** The first key that attributes name with two values, which no alert has; undefined if there is none. */
export function twoValues(attributes: readonly string[]): string | undefined {
  const keyOf = (text: string) => text.slice(0, text.indexOf("="));
  const twice = attributes.find((text, at) =>
    attributes.slice(0, at).some((before) => before !== text && keyOf(before) === keyOf(text)),
  );
  return twice === undefined ? undefined : keyOf(twice);
}

function instant(text: string | undefined): string | undefined {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

export function toFilter(search: InboxSearch): AlertFilter {
  return {
    state: search.state === undefined ? "FIRING" : (search.state.toUpperCase() as AlertState),
    severity: severities.filter((s) => search.severity?.includes(s.toLowerCase())),
    application: search.app ?? [],
    ruleId: search.rule ?? [],
    signature: (search.error ?? []).map(signatureOf),
    route: search.route ?? [],
    environment: search.env ?? [],
    executionId: search.execution ?? "",
    correlationId: search.correlation ?? "",
    attribute: search.attr ?? [],
    hours: spans.find(({ value }) => value === search.within)?.hours ?? 0,
    from: search.from ?? "",
    to: search.to ?? "",
    q: search.q ?? "",
    mine: search.mine !== undefined,
    assignee: (search.assignee ?? []).map(signatureOf),
    snoozed: search.snoozed ?? "any",
    unread: search.unread !== undefined,
    perExchange: search.per === "exchange",
  };
}

export function toFold({ fold }: InboxSearch): Folding {
  return fold === "error" ? "signature" : (fold ?? "issue");
}

export function toSearch(filter: AlertFilter, fold: Folding = "issue"): InboxSearch {
  return parseSearch({
    ...Object.fromEntries(lists.map(([name, part]) => [name, filter[part]])),
    state: filter.state,
    severity: filter.severity.map((s) => s.toLowerCase()),
    error: filter.signature.map(errorOf),
    execution: filter.executionId,
    correlation: filter.correlationId,
    attr: filter.attribute,
    within: spans.find(({ hours }) => hours === filter.hours)?.value,
    from: filter.from,
    to: filter.to,
    q: filter.q,
    mine: filter.mine ? "yes" : undefined,
    assignee: filter.assignee.map(errorOf),
    snoozed: filter.snoozed,
    unread: filter.unread ? "yes" : undefined,
    per: filter.perExchange ? "exchange" : undefined,
    fold: fold === "signature" ? "error" : fold,
  });
}

/** The filter that restricts only the state. */
export function wide(state: AlertState): AlertFilter {
  return toFilter(parseSearch({ state }));
}

/** Whether something other than the state restricts the list. */
export function isNarrowed(filter: AlertFilter): boolean {
  return JSON.stringify(filter) !== JSON.stringify(wide(filter.state));
}

function texts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return [...new Set(list.filter((item): item is string => typeof item === "string" && item !== ""))];
}
