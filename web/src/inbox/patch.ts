import type { InfiniteData, QueryClient, QueryKey } from "@tanstack/react-query";
import { type AlertFilter, alertKeys } from "../api/alerts";
import type { Alert, AlertGroup, AlertGroupPage, AlertPage } from "../api/client";
import { countedAs } from "./filter";
import { groupId } from "./fold";

/**
 * Changes an alert everywhere in the cache. A list with another state as its filter loses it. Of
 * groups, only one that is this alert alone is changed: how the others change, the server knows.
 */
export function patchAlert(cache: QueryClient, id: string, change: (alert: Alert) => Alert): void {
  cache.setQueryData<Alert>(alertKeys.one(id), (old) => old && change(old));
  const patched = (items: Alert[], state: Alert["state"]) =>
    items.map((row) => (row.id === id ? change(row) : row)).filter((row) => row.id !== id || row.state === state);
  for (const [key, data] of cache.getQueriesData<InfiniteData<AlertPage>>({ queryKey: alertKeys.lists })) {
    if (!data) continue;
    const { state } = key[2] as AlertFilter;
    const pages = data.pages.map((page) => ({ ...page, items: patched(page.items, state) }));
    cache.setQueryData(key, { ...data, pages });
  }
  for (const [key, data] of cache.getQueriesData<AlertPage>({ queryKey: alertKeys.nested })) {
    if (data) cache.setQueryData(key, { ...data, items: patched(data.items, (key[2] as AlertFilter).state) });
  }
  for (const [key, data] of cache.getQueriesData<InfiniteData<AlertGroupPage>>({ queryKey: alertKeys.groups })) {
    if (!data) continue;
    const { state } = key[3] as AlertFilter;
    const isIt = ({ count, newest }: AlertGroup) => count === 1 && newest.id === id;
    const pages = data.pages.map((page) => ({
      ...page,
      items: page.items
        .map((group) => (isIt(group) ? changedGroup(group, change) : group))
        .filter((group) => !isIt(group) || group.newest.state === state),
    }));
    cache.setQueryData(key, { ...data, pages });
  }
}

/** A group of one alert after a change of it. */
function changedGroup(group: AlertGroup, change: (alert: Alert) => Alert): AlertGroup {
  const newest = change({ ...group.newest, unread: group.unread > 0 });
  const none = { pending: 0, firing: 0, acknowledged: 0, resolved: 0 };
  return { ...group, ...none, [countedAs[newest.state]]: 1, unread: newest.unread ? 1 : 0, newest };
}

/**
 * Puts an alert back where `before` had it, after an action on it was refused. The rest of the cache stays: events and
 * other actions may have changed it since.
 */
export function restoreAlert(cache: QueryClient, alert: Alert, before: readonly [QueryKey, unknown][]): void {
  const { id } = alert;
  const alerts = { isIt: (row: Alert) => row.id === id, idOf: (row: Alert) => row.id };
  const groups = { isIt: ({ count, newest }: AlertGroup) => count === 1 && newest.id === id, idOf: groupId };
  const one = before.find(([key]) => key[1] === alertKeys.ones[1] && key[2] === id)?.[1];
  cache.setQueryData(alertKeys.one(id), one ?? alert);
  for (const [key, data] of before) {
    const [, kind] = key;
    if (data === undefined) continue;
    if (kind === alertKeys.nested[1])
      cache.setQueryData<AlertPage>(key, (now) => now && putBack(now, data as AlertPage, alerts));
    if (kind === alertKeys.lists[1])
      cache.setQueryData<InfiniteData<AlertPage>>(key, (now) =>
        putBackIn(now, data as InfiniteData<AlertPage>, alerts),
      );
    if (kind === alertKeys.groups[1])
      cache.setQueryData<InfiniteData<AlertGroupPage>>(key, (now) =>
        putBackIn(now, data as InfiniteData<AlertGroupPage>, groups),
      );
  }
}

interface Rows<T> {
  /** Whether a row is the one to put back. */
  isIt: (row: T) => boolean;
  idOf: (row: T) => string;
}

function putBackIn<T, P extends { items: T[] }>(
  now: InfiniteData<P> | undefined,
  before: InfiniteData<P>,
  rows: Rows<T>,
): InfiniteData<P> | undefined {
  const was = before.pages.flatMap(({ items }) => items).find(rows.isIt);
  // It has been read again meanwhile.
  if (!now || !was || now.pages.some(({ items }) => has(items, was, rows))) return now;
  const pages = now.pages.map((page, at) => putBack(page, before.pages[at] ?? page, rows));
  return { ...now, pages };
}

/** A page with the row above those that were below it. */
function putBack<T, P extends { items: T[] }>(now: P, before: P, rows: Rows<T>): P {
  const was = before.items.findIndex(rows.isIt);
  const row = before.items[was];
  if (row === undefined || has(now.items, row, rows)) return now;
  const below = new Set(before.items.slice(was + 1).map(rows.idOf));
  const at = now.items.findIndex((item) => below.has(rows.idOf(item)));
  return { ...now, items: now.items.toSpliced(at < 0 ? now.items.length : at, 0, row) };
}

const has = <T>(items: readonly T[], row: T, { idOf }: Rows<T>) => items.some((item) => idOf(item) === idOf(row));

/** The alert as a list or a group in the cache has it. */
export function cachedAlert(cache: QueryClient, id: string): Alert | undefined {
  const lists = cache.getQueriesData<InfiniteData<AlertPage>>({ queryKey: alertKeys.lists });
  const groups = cache.getQueriesData<InfiniteData<AlertGroupPage>>({ queryKey: alertKeys.groups });
  const nested = cache.getQueriesData<AlertPage>({ queryKey: alertKeys.nested });
  const alerts = [
    ...lists.flatMap(([, data]) => data?.pages.flatMap(({ items }) => items) ?? []),
    ...nested.flatMap(([, data]) => data?.items ?? []),
    ...groups.flatMap(([, data]) => data?.pages.flatMap(({ items }) => items.map(({ newest }) => newest)) ?? []),
  ];
  return alerts.find((alert) => alert.id === id);
}
