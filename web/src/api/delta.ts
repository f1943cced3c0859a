import type { InfiniteData } from "@tanstack/react-query";
import type { Alert, AlertPage } from "./client";

type Pages = InfiniteData<AlertPage, string>;

/** Whether a is above b: it fired later, or at the same instant with the greater id. */
export function isAbove(a: Alert, b: Alert): boolean {
  const difference = Date.parse(a.firedAt) - Date.parse(b.firedAt);
  return difference > 0 || (difference === 0 && a.id > b.id);
}

/**
 * Updates the loaded part of a list if only some alerts have changed. `found` are those of them
 * that match the list's filter now; the others leave the list. Alerts that belong below the loaded
 * part are left to the following pages.
 */
export function applyDelta(old: Pages, changed: ReadonlySet<string>, found: readonly Alert[]): Pages {
  const pages = old.pages.map((page) => ({ ...page, items: page.items.filter(({ id }) => !changed.has(id)) }));
  for (const alert of [...found].sort((a, b) => (isAbove(a, b) ? 1 : -1))) {
    const at = old.pages.findIndex((page) => holds(page, alert));
    const page = pages[at];
    if (!page) continue;
    const index = page.items.findIndex((item) => isAbove(alert, item));
    page.items.splice(index < 0 ? page.items.length : index, 0, alert);
  }
  const first = pages[0];
  if (first) first.asOf = found.reduce((latest, { firedAt }) => later(latest, firedAt), first.asOf);
  return { ...old, pages };
}

/**
 * Whether an alert belongs on a loaded page, or above it. A page without a cursor is the last one,
 * and reaches to the end.
 */
function holds({ items, nextCursor, searchedTo }: AlertPage, alert: Alert): boolean {
  if (!nextCursor) return true;
  if (searchedTo) return Date.parse(alert.firedAt) >= Date.parse(searchedTo);
  const last = items.at(-1);
  return last !== undefined && (alert.id === last.id || isAbove(alert, last));
}

/** Postgres's instants have microseconds, which a Date would drop. */
const later = (a: string, b: string) => {
  const difference = Date.parse(a) - Date.parse(b);
  return difference > 0 || (difference === 0 && a >= b) ? a : b;
};
