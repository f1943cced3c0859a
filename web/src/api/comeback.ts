import type { QueryClient } from "@tanstack/react-query";
import { isAway } from "./errors";
import { systemStatus } from "./status";

/** Whether Tocsin did not answer when it was asked last how it is, which is every few seconds. */
export function isKnownAway(cache: QueryClient): boolean {
  return isAway(cache.getQueryState(systemStatus().queryKey)?.error);
}

/**
 * Calls back each time that Tocsin answers after it did not, and first asks again for what is on the page and could not be
 * read meanwhile. Lists that are loaded page by page are left to those who keep them fresh: all their pages would be asked
 * again. Returns how to end that.
 */
export function onComeback(cache: QueryClient, call: () => void): () => void {
  let away = false;
  return cache.getQueryCache().subscribe((event) => {
    if (event.type !== "updated") return;
    if (event.action.type === "error") away ||= isAway(event.action.error);
    if (event.action.type !== "success" || event.action.manual || !away) return;
    away = false;
    void cache.refetchQueries({
      type: "active",
      predicate: ({ state }) => state.status === "error" && !isPaged(state.data),
    });
    call();
  });
}

const isPaged = (data: unknown) => typeof data === "object" && data !== null && "pageParams" in data;
