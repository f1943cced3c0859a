import type { Alert, AlertState } from "../api/client";

/**
 * A list shows the newest alert first. The open alert may leave the list's filter, because it was
 * acknowledged. Its row stays where it was, in its new state, until another one is opened: nothing
 * moves while the reader works.
 */
export function withPinned(rows: readonly Alert[], pinned: Alert | undefined): readonly Alert[] {
  if (!pinned || rows.some((row) => row.id === pinned.id)) return rows;
  const at = rows.findIndex((row) => isBefore(pinned, row));
  const index = at < 0 ? rows.length : at;
  return [...rows.slice(0, index), pinned, ...rows.slice(index)];
}

/** Whether a is above b: fired later, or at the same instant with the greater id. */
function isBefore(a: Alert, b: Alert): boolean {
  const difference = Date.parse(a.firedAt) - Date.parse(b.firedAt);
  return difference > 0 || (difference === 0 && a.id > b.id);
}

/**
 * The rows that came in above the known ones, which are new to the reader. If the lists have
 * nothing in common, no row is new.
 */
export function arrivals(before: readonly string[], now: readonly string[]): readonly string[] {
  if (before.length === 0) return [];
  const known = new Set(before);
  const first = now.findIndex((id) => known.has(id));
  return first < 0 ? [] : now.slice(0, first);
}

/**
 * The row that a step from the present row leads to. A step from no row, or from a row that is
 * gone, begins at another one.
 */
export function step(ids: readonly string[], from: string | undefined, by: 1 | -1, begin = ids[0]): string | undefined {
  const at = from === undefined ? -1 : ids.indexOf(from);
  if (at < 0) return begin;
  return ids[Math.min(ids.length - 1, Math.max(0, at + by))];
}

/** The row that takes over when a row leaves the list: the one below, or otherwise the one above. */
export function successor(ids: readonly string[], leaving: string): string | undefined {
  const at = ids.indexOf(leaving);
  return at < 0 ? ids[0] : (ids[at + 1] ?? ids[at - 1]);
}

const order: Record<AlertState, number> = { PENDING: 0, FIRING: 1, ACKNOWLEDGED: 2, RESOLVED: 3 };

/** Whether a person can still move an alert to a state. A pending alert is left to its rule. */
export function canBecome(alert: Alert, state: AlertState): boolean {
  return alert.state !== "PENDING" && order[state] > order[alert.state];
}
