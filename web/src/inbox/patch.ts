import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import { type AlertFilter, alertKeys } from "../api/alerts";
import type { Alert, AlertGroup, AlertGroupPage, AlertPage } from "../api/client";
import { countedAs } from "./filter";

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
