import type { InfiniteData, Query, QueryClient } from "@tanstack/react-query";
import { type AlertFilter, alertKeys, alertPage, changedAlerts, isUndelivered, mostChanged } from "./alerts";
import type { Alert, AlertCounts, AlertGroupPage, AlertPage } from "./client";
import { applyDelta } from "./delta";
import { mergeHead } from "./head";
import { Live } from "./live";
import { isReplays } from "./rules";
import { throttle } from "./throttle";

const refreshGapMs = 1_000;
/** Folding reads every matching alert, so it may take at most a fifth of the time. */
const groupsGapMs = 2_000;
const groupsShare = 5;
/** How often everything is read again while something changes, in case an event did not name a change. */
const wholeMs = 60_000;
/** No event announces a delivery: rows whose messages are not delivered yet are read again after so long. */
const deliveryMs = 5_000;
/** A replay that raises alerts is noticed by these. */
const replaysGapMs = 2_000;

/** Only the beginning of a list longer than this is read again as a whole: the rest would need a call for each page. */
const longPages = 20;

type List = InfiniteData<AlertPage, string>;
type Groups = InfiniteData<AlertGroupPage, string>;

/**
 * Keeps the cache as fresh as the stream of events. An event contains the counts and the ids of the
 * alerts that changed. A list reads those, whatever its length, at most once a second. If an event
 * names no alerts, everything on the page is read again.
 */
export function follow(cache: QueryClient): Live {
  /** The alerts to read; undefined for all. */
  let changed: Set<string> | undefined;
  let wholeAt = Number.NEGATIVE_INFINITY;
  let gapMs = refreshGapMs;
  let waiting: ReturnType<typeof setTimeout> | undefined;

  let foldMs = 0;
  let groupsWaiting: ReturnType<typeof setTimeout> | undefined;
  const refreshGroups = throttle(
    async () => {
      const began = Date.now();
      const known = (query: Query) => !isTrying(query);
      await Promise.all([
        cache.invalidateQueries({ queryKey: alertKeys.groups, predicate: known }),
        cache.invalidateQueries({ queryKey: alertKeys.issues, predicate: known }),
      ]);
      foldMs = Date.now() - began;
      clearTimeout(groupsWaiting);
      if (!hasUndeliveredGroups(cache)) return;
      groupsWaiting = setTimeout(() => live.current() === "live" && refreshGroups(), deliveryMs);
    },
    () => Math.max(groupsGapMs, groupsShare * foldMs),
  );
  const refresh = throttle(
    async () => {
      // An action under way has changed the cache ahead of the server, and reads everything again
      // when it is done.
      if (cache.isMutating({ mutationKey: alertKeys.all }) > 0) return;
      const ids = changed;
      changed = new Set();
      const whole = ids === undefined || ids.size > mostChanged || Date.now() - wholeAt > wholeMs;
      gapMs = whole ? refreshGapMs * loadedPages(cache) : refreshGapMs;
      try {
        if (whole) await refreshAll(cache);
        else await refreshSome(cache, [...new Set([...ids, ...undelivered(cache)])].slice(0, mostChanged));
        if (whole) wholeAt = Date.now();
      } catch {
        // Alerts that could not be read are unknown. The query cache has the error for what is on
        // the page.
        changed = undefined;
      }
      clearTimeout(waiting);
      if (undelivered(cache).length > 0) waiting = setTimeout(() => live.current() === "live" && refresh(), deliveryMs);
    },
    () => gapMs,
  );
  const refreshReplays = throttle(
    () => cache.invalidateQueries({ predicate: (query) => isReplays(query.queryKey) && !isTrying(query) }),
    () => replaysGapMs,
  );
  const live = new Live({
    onAlerts: (counts, ids) => {
      if (counts) cache.setQueryData<AlertCounts>(alertKeys.counts, (old) => ({ ...old, ...counts }));
      else void cache.invalidateQueries({ queryKey: alertKeys.counts });
      if (!ids) changed = undefined;
      else for (const id of ids) changed?.add(id);
      refresh();
      refreshGroups();
      refreshReplays();
    },
  });
  return live;
}

/** Reads everything that is on the page again. */
async function refreshAll(cache: QueryClient): Promise<void> {
  await Promise.all([
    cache.invalidateQueries({
      queryKey: alertKeys.lists,
      predicate: (query) => !isLong(query.state.data) && !isTrying(query),
    }),
    refreshHeads(cache),
    cache.invalidateQueries({ queryKey: alertKeys.nested }),
    cache.invalidateQueries({ queryKey: alertKeys.totals }),
    cache.invalidateQueries({ queryKey: alertKeys.ones, predicate: (query) => !isTrying(query) }),
    // A count that continues, or ends, creates new messages about an alert that is open here.
    cache.invalidateQueries({ queryKey: alertKeys.timelines }),
  ]);
}

/** Reads some alerts for the lists on the page, and for other parts that show them. */
async function refreshSome(cache: QueryClient, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const set = new Set(ids);
  const shows = ({ queryKey }: Query) => set.has(String(queryKey[2]));
  await Promise.all([
    ...activeLists(cache).map(async ({ queryKey }) => {
      const { items } = await changedAlerts(queryKey[2] as AlertFilter, ids);
      cache.setQueryData<List>(queryKey, (old) => old && applyDelta(old, set, items));
    }),
    cache.invalidateQueries({ queryKey: alertKeys.lists, type: "inactive", refetchType: "none" }),
    cache.invalidateQueries({ queryKey: alertKeys.nested }),
    cache.invalidateQueries({ queryKey: alertKeys.totals }),
    cache.invalidateQueries({ queryKey: alertKeys.ones, predicate: (query) => shows(query) && !isTrying(query) }),
    cache.invalidateQueries({ queryKey: alertKeys.timelines, predicate: shows }),
  ]);
}

function activeLists(cache: QueryClient): readonly Query[] {
  const lists = cache.getQueryCache().findAll({ queryKey: alertKeys.lists, type: "active" });
  return lists.filter(({ state }) => state.data !== undefined);
}

/** The alerts on the page that have messages to deliver. */
function undelivered(cache: QueryClient): string[] {
  const alerts = activeLists(cache).flatMap(({ state }) => (state.data as List).pages.flatMap(({ items }) => items));
  return alerts.filter(isUndelivered).map(({ id }: Alert) => id);
}

/** Whether a group on the page has messages to deliver. */
function hasUndeliveredGroups(cache: QueryClient): boolean {
  const groups = cache.getQueryCache().findAll({ queryKey: alertKeys.groups, type: "active" });
  return groups.some(({ state }) =>
    (state.data as Groups | undefined)?.pages.some(({ items }) => items.some(isUndelivered)),
  );
}

async function refreshHeads(cache: QueryClient): Promise<void> {
  await Promise.all(
    activeLists(cache)
      .filter(({ state }) => isLong(state.data))
      .map(async ({ queryKey }) => {
        const head = await alertPage(queryKey[2] as AlertFilter, "");
        cache.setQueryData<List>(queryKey, (old) => old && mergeHead(old, head));
      }),
  );
}

/**
 * Whether a first answer is under way. Requesting it again would not be another call: it would wait
 * for this one and, when this one fails, repeat it before anybody saw why.
 */
function isTrying({ state }: Query): boolean {
  return state.data === undefined && state.fetchStatus === "fetching";
}

/** Whether a list is long, or a search, in which each page is expensive. */
function isLong(data: unknown): boolean {
  const pages = (data as List | undefined)?.pages ?? [];
  return pages.length > longPages || (pages.length > 1 && pages.some(({ searchedTo }) => searchedTo !== undefined));
}

/** How many calls are needed to read everything on the page again. */
function loadedPages(cache: QueryClient): number {
  const loaded = activeLists(cache).map(({ state }) => (isLong(state.data) ? 1 : (state.data as List).pages.length));
  return Math.max(1, ...loaded);
}
