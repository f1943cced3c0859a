import type { InfiniteData, Query, QueryClient } from "@tanstack/react-query";
import { type AlertFilter, alertKeys, alertPage } from "./alerts";
import type { AlertCounts, AlertPage } from "./client";
import { mergeHead } from "./head";
import { Live } from "./live";
import { throttle } from "./throttle";

const refreshGapMs = 1_000;

/** Of a list longer than this, only the beginning is asked again by itself: the rest would cost a call for each page. */
const longPages = 20;

/**
 * Keeps the cache as fresh as the stream of events: counts come with the event; lists and open alerts are asked again, at
 * most once a second for each page that a list has loaded, so that a storm costs this page and the server little.
 */
export function follow(cache: QueryClient): Live {
  const refresh = throttle(
    async () => {
      // An action under way has changed the cache ahead of the server, and asks for the truth itself when it is done.
      if (cache.isMutating({ mutationKey: alertKeys.all }) > 0) return;
      await Promise.all([
        cache.invalidateQueries({
          queryKey: alertKeys.lists,
          predicate: (query) => !isLong(query.state.data) && !isTrying(query),
        }),
        refreshHeads(cache),
        cache.invalidateQueries({ queryKey: alertKeys.groups, predicate: (query) => !isTrying(query) }),
        cache.invalidateQueries({ queryKey: alertKeys.nested }),
        cache.invalidateQueries({ queryKey: alertKeys.totals }),
        cache.invalidateQueries({ queryKey: alertKeys.ones, predicate: (query) => !isTrying(query) }),
        // A count that goes on, or is over, owes new messages about an alert that is open here.
        cache.invalidateQueries({ queryKey: alertKeys.timelines }),
      ]);
    },
    () => refreshGapMs * loadedPages(cache),
  );
  return new Live({
    onAlerts: (counts: AlertCounts | undefined) => {
      if (counts) cache.setQueryData<AlertCounts>(alertKeys.counts, (old) => ({ ...old, ...counts }));
      else void cache.invalidateQueries({ queryKey: alertKeys.counts });
      refresh();
    },
  });
}

async function refreshHeads(cache: QueryClient): Promise<void> {
  const long = cache
    .getQueryCache()
    .findAll({ queryKey: alertKeys.lists, type: "active" })
    .filter((query) => isLong(query.state.data));
  await Promise.all(
    long.map(async ({ queryKey }) => {
      const head = await alertPage(queryKey[2] as AlertFilter, "");
      cache.setQueryData<InfiniteData<AlertPage, string>>(queryKey, (old) => old && mergeHead(old, head));
    }),
  );
}

/**
 * Whether a first answer is under way. Asking again would not be another call; it would be waiting for this one, and the
 * moment that it failed ask anew, before anybody saw why.
 */
function isTrying({ state }: Query): boolean {
  return state.data === undefined && state.fetchStatus === "fetching";
}

/** Whether a list is long, or of a search, each page of which is work. */
function isLong(data: unknown): boolean {
  const pages = (data as { pages?: AlertPage[] } | undefined)?.pages ?? [];
  return pages.length > longPages || (pages.length > 1 && pages.some(({ searchedTo }) => searchedTo !== undefined));
}

function pagesOf(data: unknown): number {
  return (data as { pages?: unknown[] } | undefined)?.pages?.length ?? 1;
}

/** How many calls a refresh of what is on the page costs. */
function loadedPages(cache: QueryClient): number {
  const loaded = cache
    .getQueryCache()
    .findAll({ queryKey: alertKeys.lists, type: "active" })
    .map((query) => (isLong(query.state.data) ? 1 : pagesOf(query.state.data)));
  return Math.max(1, ...loaded);
}
