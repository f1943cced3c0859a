import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import { type AlertFilter, alertKeys } from "../api/alerts";
import type { Alert, AlertPage } from "../api/client";

/** Changes an alert everywhere in the cache. A list with another state as its filter loses it. */
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
}
