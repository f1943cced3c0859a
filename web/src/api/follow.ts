import type { InfiniteData, Query, QueryClient, QueryKey } from "@tanstack/react-query";
import { type AlertFilter, alertKeys, alertPage, changedAlerts, isUndelivered, mostChanged } from "./alerts";
import type { AlertCounts, AlertGroupPage, AlertPage } from "./client";
import { isKnownAway } from "./comeback";
import { applyDelta } from "./delta";
import { isPassing } from "./errors";
import { mergeHead } from "./head";
import { changedOfIssue, type IssueKey, isAlertsOfIssue, issueAlertPage, issueOf } from "./issues";
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
/** What could not be read is read again after so long. */
const againMs = 5_000;
/** A replay that raises alerts is noticed by these. */
const replaysGapMs = 2_000;

/** Only the beginning of a list longer than this is read again as a whole: the rest would need a call for each page. */
const longPages = 20;

type List = InfiniteData<AlertPage, string>;
type Groups = InfiniteData<AlertGroupPage, string>;

/**
 * Keeps the cache as fresh as the stream of events, or as an interval while there is no stream. An
 * event contains the counts and the ids of the alerts that changed. A list reads those, whatever
 * its length, at most once a second. So do an opened group and the alerts of an issue. If an event
 * names no alerts, everything on the page is read again. Groups are always read again, as far down
 * as the page has kept them.
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
        cache.invalidateQueries({ queryKey: alertKeys.totals, predicate: known }),
      ]);
      const failed = hasFailed(cache, [alertKeys.groups, alertKeys.totals]);
      foldMs = failed ? 0 : Date.now() - began;
      clearTimeout(groupsWaiting);
      if (!failed && !hasUndeliveredGroups(cache)) return;
      const afterMs = failed ? againMs : deliveryMs;
      groupsWaiting = setTimeout(() => live.current() === "live" && refreshGroups(), afterMs);
    },
    () => Math.max(groupsGapMs, groupsShare * foldMs),
  );
  let issueMs = 0;
  const refreshIssues = throttle(
    async () => {
      const began = Date.now();
      await cache.refetchQueries({
        queryKey: alertKeys.issues,
        type: "active",
        predicate: (query) => query.state.isInvalidated && !isAlertList(query) && !isTrying(query),
      });
      issueMs = Date.now() - began;
    },
    () => Math.max(groupsGapMs, groupsShare * issueMs),
  );
  const refresh = throttle(
    async () => {
      // An action under way has changed the cache ahead of the server, and reads everything again
      // when it is done.
      if (isActing(cache)) return;
      const ids = changed;
      changed = new Set();
      const whole = ids === undefined || ids.size > mostChanged || Date.now() - wholeAt > wholeMs;
      gapMs = refreshGapMs * (whole ? loadedPages(cache) : Math.max(1, activeLists(cache).length));
      try {
        if (whole) await refreshAll(cache);
        else await refreshSome(cache, ids);
        if (hasFailed(cache, [alertKeys.lists, alertKeys.nested, alertKeys.issues, alertKeys.ones]))
          changed = undefined;
        else if (whole) wholeAt = Date.now();
        refreshIssues();
      } catch {
        // Alerts that could not be read are unknown. The query cache has the error for what is on
        // the page.
        changed = undefined;
      }
      clearTimeout(waiting);
      const afterMs = changed ? deliveryMs : againMs;
      if (changed && undelivered(cache).length === 0) return;
      waiting = setTimeout(() => live.current() === "live" && refresh(), afterMs);
    },
    () => gapMs,
  );
  const refreshReplays = throttle(
    () => cache.invalidateQueries({ predicate: (query) => isReplays(query.queryKey) && !isTrying(query) }),
    () => replaysGapMs,
  );
  const live = new Live({
    onAlerts: (counts, ids) => {
      // Without a stream this is a poll, and there is nobody to ask.
      if (live.current() === "polling" && isKnownAway(cache)) return;
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
    cache.invalidateQueries({ queryKey: alertKeys.nested, predicate: (query) => !isTrying(query) }),
    cache.invalidateQueries({
      queryKey: alertKeys.issues,
      predicate: (query) => isAlertList(query) && !isLong(query.state.data) && !isTrying(query),
    }),
    cache.invalidateQueries({
      queryKey: alertKeys.issues,
      predicate: (query) => !isAlertList(query),
      refetchType: "none",
    }),
    cache.invalidateQueries({ queryKey: alertKeys.ones, predicate: (query) => !isTrying(query) }),
    // A count that continues, or ends, creates new messages about an alert that is open here.
    cache.invalidateQueries({ queryKey: alertKeys.timelines }),
  ]);
}

/**
 * Reads the changed alerts, and those with messages to deliver, for the lists on the page and for
 * other parts that show them.
 */
async function refreshSome(cache: QueryClient, changed: ReadonlySet<string>): Promise<void> {
  const ids = [...new Set([...changed, ...undelivered(cache)])].slice(0, mostChanged);
  if (ids.length === 0) return;
  const set = new Set(ids);
  const shows = ({ queryKey }: Query) => set.has(String(queryKey[2]));
  await Promise.all([
    ...activeLists(cache).map(async ({ queryKey }) => {
      const { items } = await changedIn(queryKey, ids);
      // The answer may be older than the action, which reads everything again when it is done.
      if (isActing(cache)) return;
      cache.setQueryData<List | AlertPage>(queryKey, (old) => {
        if (!old || "pages" in old) return old && applyDelta(old, set, items);
        return applyDelta({ pages: [old], pageParams: [""] }, set, items).pages[0];
      });
      if (isEmptied(cache.getQueryData(queryKey))) await cache.invalidateQueries({ queryKey, exact: true });
      // What is said of an issue does not depend on deliveries.
      if (queryKey[1] !== alertKeys.issues[1] || !items.some(({ id }) => changed.has(id))) return;
      await cache.invalidateQueries({ queryKey: issueOf(queryKey), exact: true, refetchType: "none" });
    }),
    cache.invalidateQueries({ queryKey: alertKeys.lists, type: "inactive", refetchType: "none" }),
    cache.invalidateQueries({ queryKey: alertKeys.nested, type: "inactive", refetchType: "none" }),
    cache.invalidateQueries({ queryKey: alertKeys.issues, type: "inactive", refetchType: "none" }),
    cache.invalidateQueries({ queryKey: alertKeys.ones, predicate: (query) => shows(query) && !isTrying(query) }),
    cache.invalidateQueries({ queryKey: alertKeys.timelines, predicate: shows }),
  ]);
}

/** Whether an action on alerts is under way. */
const isActing = (cache: QueryClient) => cache.isMutating({ mutationKey: alertKeys.all }) > 0;

/** Those of some alerts that belong to the list with this key. */
function changedIn(queryKey: QueryKey, ids: readonly string[]): Promise<AlertPage> {
  return queryKey[1] === alertKeys.issues[1]
    ? changedOfIssue(queryKey[2] as IssueKey, ids)
    : changedAlerts(queryKey[2] as AlertFilter, ids);
}

/** Whether the data of a query are alerts: a list, an opened group, or the alerts of an issue. */
function isAlertList({ queryKey }: Query): boolean {
  const [, kind] = queryKey;
  return kind === alertKeys.lists[1] || kind === alertKeys.nested[1] || isAlertsOfIssue(queryKey);
}

/** Whether the page shows what could not be read, but may be read at another try. */
function hasFailed(cache: QueryClient, keys: readonly QueryKey[]): boolean {
  const shown = keys.flatMap((queryKey) => cache.getQueryCache().findAll({ queryKey, type: "active" }));
  return shown.some(({ state: { error } }) => error !== null && isPassing(error));
}

/** The lists of alerts on the page. */
function activeLists(cache: QueryClient): readonly Query[] {
  return cache.getQueryCache().findAll({
    queryKey: alertKeys.all,
    type: "active",
    predicate: (query) => isAlertList(query) && query.state.data !== undefined,
  });
}

function pagesOf({ state }: Query): readonly AlertPage[] {
  const data = state.data as List | AlertPage;
  return "pages" in data ? data.pages : [data];
}

/** The alerts on the page that have messages to deliver. */
function undelivered(cache: QueryClient): string[] {
  const alerts = activeLists(cache).flatMap((query) => pagesOf(query).flatMap(({ items }) => items));
  return alerts.filter(isUndelivered).map(({ id }) => id);
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
        const head = await headOf(queryKey);
        cache.setQueryData<List>(queryKey, (old) => old && mergeHead(old, head));
      }),
  );
}

/** The first page of the list with this key. */
function headOf(queryKey: QueryKey): Promise<AlertPage> {
  return queryKey[1] === alertKeys.issues[1]
    ? issueAlertPage(queryKey[2] as IssueKey, "")
    : alertPage(queryKey[2] as AlertFilter, "");
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

/**
 * Whether all loaded alerts have left a list that has older ones. Nothing could be placed in it. A search goes on by
 * itself.
 */
function isEmptied(data: List | AlertPage | undefined): boolean {
  const pages = data && "pages" in data ? data.pages : [];
  return (
    pages.every(({ items, searchedTo }) => items.length === 0 && searchedTo === undefined) &&
    pages.at(-1)?.nextCursor !== undefined
  );
}

/** How many calls are needed to read everything on the page again. */
function loadedPages(cache: QueryClient): number {
  const loaded = activeLists(cache).map((query) => (isLong(query.state.data) ? 1 : pagesOf(query).length));
  return Math.max(
    1,
    loaded.reduce((all, pages) => all + pages, 0),
  );
}
