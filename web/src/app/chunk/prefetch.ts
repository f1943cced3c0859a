import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import { isAtLeast, type Me, me } from "../../api/access";
import { useLive } from "../../api/LiveProvider";
import * as pages from "../pages";
import { paletteChunk } from "../palette/chunk";
import { Chunk } from "./chunk";

/** What pages only load when they need it. */
const charts = new Chunk(() => import("../../ui/plot"));
const bodyEditor = new Chunk(() => import("../../webhooks/BodyEditor"));

/**
 * Loads the pages that the reader may open, one after another, whenever the browser is idle, so
 * that they are available when Tocsin is not. It begins when the first page has what it requested,
 * and not if the browser is set to save data.
 */
export function usePrefetch() {
  const { data: who } = useQuery(me());
  const live = useLive();
  const connected = useSyncExternalStore(live.subscribe, live.current) === "live";
  const begun = useFirstQuiet(who !== undefined && connected);
  useEffect(() => {
    if (!begun || !connected || !who || savesData()) return;
    const stop = new AbortController();
    void prefetch(chunksFor(who), stop.signal);
    return () => stop.abort();
  }, [begun, connected, who]);
}

/**
 * Whether there was a moment without a request, once `ready`. Nothing is observed after it: each
 * poll would otherwise render the caller twice.
 */
export function useFirstQuiet(ready: boolean): boolean {
  const cache = useQueryClient();
  const [quiet, setQuiet] = useState(false);
  useEffect(() => {
    if (quiet || !ready) return;
    const look = () => {
      if (cache.isFetching() === 0) setQuiet(true);
    };
    look();
    return cache.getQueryCache().subscribe(look);
  }, [cache, quiet, ready]);
  return quiet;
}

/** In the order in which they are likely to be needed. */
export function chunksFor(who: Me): readonly Chunk<unknown>[] {
  const { inbox, rules, rule, issue, deliveries, system, webhooks, editRule, editWebhook, account } = pages;
  return [
    ...[inbox, rules, rule, issue, deliveries, system, webhooks].map(({ chunk }) => chunk),
    paletteChunk,
    charts,
    ...[editRule, editWebhook, account].map(({ chunk }) => chunk),
    ...(isAtLeast(who, "editor") ? [pages.newRule.chunk, pages.newWebhook.chunk, bodyEditor] : []),
    ...(isAtLeast(who, "admin") ? [pages.users.chunk, pages.tokens.chunk, pages.audit.chunk, pages.keys.chunk] : []),
  ];
}

/** Ends at the first failure, because the server then has other problems. */
export async function prefetch(chunks: readonly Chunk<unknown>[], signal: AbortSignal, wait = idle): Promise<void> {
  for (const chunk of chunks) {
    await wait();
    if (signal.aborted) return;
    await chunk.load();
    if (chunk.current().failure) return;
  }
}

const idle = () =>
  new Promise<void>((resolve) => {
    // A browser that draws no frames may never call an idle page idle.
    if (typeof requestIdleCallback === "function") requestIdleCallback(() => resolve(), { timeout: 2000 });
    else setTimeout(resolve, 200);
  });

/** A hint that not every browser supports. */
function savesData(): boolean {
  return (navigator as { connection?: { saveData?: boolean } }).connection?.saveData === true;
}
