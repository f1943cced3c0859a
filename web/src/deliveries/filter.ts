import type { NotificationStatus } from "../api/client";
import type { NotificationFilter, Retriable } from "../api/notifications";

/** The form of a filter in the address: defaults are left out. */
export interface DeliverySearch {
  status?: string[];
  webhook?: string[];
  rule?: string[];
  alert?: string[];
  digest?: string[];
  silence?: string[];
  /** The digests that list what a silence suppressed. */
  digestsOf?: string[];
  within?: string;
  q?: string;
}

export const statuses: readonly NotificationStatus[] = [
  "PENDING",
  "RETRYING",
  "DELIVERED",
  "FAILED",
  "EXHAUSTED",
  "DISCARDED",
  "SUPPRESSED",
];
export const retriable: readonly Retriable[] = ["FAILED", "EXHAUSTED", "RETRYING"];

/** How far back to look, by the word in the address. */
export const spans: readonly { value: string; label: string; hours: number }[] = [
  { value: "", label: "Any time", hours: 0 },
  { value: "1h", label: "Last hour", hours: 1 },
  { value: "24h", label: "Last 24 hours", hours: 24 },
  { value: "7d", label: "Last 7 days", hours: 7 * 24 },
];

/** Parses an address that may have been typed: invalid parts are ignored and are no error. */
export function parseSearch(raw: Record<string, unknown>): DeliverySearch {
  const search: DeliverySearch = {};
  const status = texts(raw.status).filter((s) => statuses.some((known) => known.toLowerCase() === s));
  if (status.length > 0) search.status = status;
  for (const name of ["webhook", "rule", "alert", "digest", "silence", "digestsOf"] as const) {
    const ids = texts(raw[name]).filter((id) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id));
    if (ids.length > 0) search[name] = ids;
  }
  const within = texts(raw.within)[0];
  if (within && spans.some(({ value }) => value === within)) search.within = within;
  const q = texts(raw.q)[0]?.slice(0, longestText);
  if (q) search.q = q;
  return search;
}

const longestText = 200;

export function toFilter(search: DeliverySearch): NotificationFilter {
  return {
    status: statuses.filter((s) => search.status?.includes(s.toLowerCase())),
    webhookId: search.webhook ?? [],
    ruleId: search.rule ?? [],
    alertId: search.alert ?? [],
    digestId: search.digest ?? [],
    silenceId: search.silence ?? [],
    digestOfSilenceId: search.digestsOf ?? [],
    hours: spans.find(({ value }) => value === search.within)?.hours ?? 0,
    q: search.q ?? "",
  };
}

/** The states that a retry of all matching messages applies to; none if it does not apply. */
export function toRetry({
  status,
  digestId,
  silenceId,
  digestOfSilenceId,
  q,
}: NotificationFilter): readonly Retriable[] {
  // The API cannot retry the results of a text search, nor all that a silence has suppressed.
  if (digestId.length + silenceId.length + digestOfSilenceId.length > 0 || q !== "") return [];
  // Messages that will be retried anyway are only included if the person selects them.
  return status.length === 0 ? ["FAILED", "EXHAUSTED"] : retriable.filter((one) => status.includes(one));
}

function texts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return [...new Set(list.filter((item): item is string => typeof item === "string" && item !== ""))];
}
