import type { QueryClient } from "@tanstack/react-query";
import type { Status } from "./client";
import { isAway, isLame } from "./errors";
import { systemStatus } from "./status";

/** Whether Tocsin did not answer the last status request, which is sent every few seconds. */
export function isKnownAway(cache: QueryClient): boolean {
  return isAway(cache.getQueryState(systemStatus().queryKey)?.error);
}

/**
 * Calls back each time that all is well again after Tocsin did not answer or could not reach one of
 * its databases. Before that, it requests again what the page could not read meanwhile, and what is
 * older than the outage (`meta.afterOutage`). Lists that are loaded page by page are left to the
 * code that refreshes them, because all their pages would be requested again. Returns a function
 * that ends this.
 */
export function onComeback(cache: QueryClient, call: () => void): () => void {
  let away = false;
  // Tocsin answers, but reports that a dependency is missing.
  let lame = false;
  const [key] = systemStatus().queryKey;
  return cache.getQueryCache().subscribe((event) => {
    if (event.type !== "updated") return;
    const { action, query } = event;
    const isStatus = query.queryKey[0] === key;
    if (action.type === "error") {
      away ||= isAway(action.error);
      lame ||= isStatus && isLame(action.error);
    }
    if (action.type !== "success" || action.manual) return;
    const ready = isStatus ? (action.data as Partial<Status>).ready : undefined;
    lame ||= ready === false;
    if (!away && !(lame && ready)) return;
    away = false;
    if (ready) lame = false;
    void cache.refetchQueries({
      type: "active",
      predicate: ({ state, meta }) => (state.status === "error" || meta?.afterOutage === true) && !isPaged(state.data),
    });
    call();
  });
}

const isPaged = (data: unknown) => typeof data === "object" && data !== null && "pageParams" in data;
