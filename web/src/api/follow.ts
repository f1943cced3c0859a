import type { QueryClient } from "@tanstack/react-query";
import { alertKeys } from "./alerts";
import type { AlertCounts } from "./client";
import { Live } from "./live";
import { throttle } from "./throttle";

const refreshGapMs = 1_000;

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
        cache.invalidateQueries({ queryKey: alertKeys.lists }),
        cache.invalidateQueries({ queryKey: alertKeys.ones }),
        // A count that goes on, or is over, owes new messages about an alert that is open here.
        cache.invalidateQueries({ queryKey: alertKeys.timelines }),
      ]);
    },
    () => refreshGapMs * loadedPages(cache),
  );
  return new Live({
    onAlerts: (counts: AlertCounts | undefined) => {
      if (counts) cache.setQueryData(alertKeys.counts, counts);
      else void cache.invalidateQueries({ queryKey: alertKeys.counts });
      refresh();
    },
  });
}

function loadedPages(cache: QueryClient): number {
  const loaded = cache
    .getQueryCache()
    .findAll({ queryKey: alertKeys.lists, type: "active" })
    .map((query) => (query.state.data as { pages: unknown[] } | undefined)?.pages.length ?? 1);
  return Math.max(1, ...loaded);
}
