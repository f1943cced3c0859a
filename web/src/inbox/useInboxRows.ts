import { useInfiniteQuery, useQueries, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type AlertFilter, alertGroups, alertList, nestedAlerts } from "../api/alerts";
import type { Alert, AlertGroup, AlertPage } from "../api/client";
import { useLastError } from "../ui/lastError";
import type { Folding } from "./filter";
import { alertRows, groupId, groupRows, isAlone, type Opened, type Row, withinGroup, withoutPagesAfter } from "./fold";
import { withPinned } from "./rows";

const noAlerts: readonly Alert[] = [];
const noGroups: readonly AlertGroup[] = [];
const noneOpened: ReadonlySet<string> = new Set();

/**
 * The lines of the inbox: alerts or groups of alerts, some of which are opened. An open alert keeps
 * its place. `keeps` keeps all pages of groups; otherwise those below the view are dropped, because
 * each change reads all that are loaded.
 */
export function useInboxRows(filter: AlertFilter, fold: Folding, open: Alert | undefined, keeps: boolean) {
  const cache = useQueryClient();
  const key = JSON.stringify([filter, fold]);

  const list = useInfiniteQuery({ ...alertList(filter), enabled: fold === "none" });
  const alerts = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? noAlerts, [list.data]);
  const pinned = usePinned(key, alerts, open);

  const folded = useInfiniteQuery({
    ...alertGroups(filter, fold === "none" ? "rule" : fold),
    enabled: fold !== "none",
  });
  const groups = useMemo(() => folded.data?.pages.flatMap((page) => page.items) ?? noGroups, [folded.data]);

  const [opened, setOpened] = useState(noneOpened);
  const openedGroups = useMemo(() => groups.filter((group) => opened.has(groupId(group))), [groups, opened]);
  const nested = useQueries({ queries: openedGroups.map((group) => nestedAlerts(withinGroup(filter, group))) });

  const [known] = useState(() => new WeakMap<Alert | AlertGroup, Row>());
  const listed = useMemo((): readonly Row[] => {
    if (fold === "none") return alertRows(withPinned(alerts, pinned), known);
    const contents: Opened = new Map(
      openedGroups.map((group, at) => {
        const { data, isError } = nested[at] ?? {};
        return [groupId(group), data?.items ?? (isError ? null : undefined)] as const;
      }),
    );
    return groupRows(groups, contents, known);
  }, [fold, alerts, pinned, known, groups, openedGroups, nested]);
  const rows = useHeldRow(key, listed, fold === "none" ? undefined : open);
  const wanted = useRef(Number.POSITIVE_INFINITY);
  const onView = useCallback((until: number) => {
    wanted.current = until;
  }, []);
  const { queryKey } = alertGroups(filter, fold === "none" ? "rule" : fold);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs when groups were read, not when a page scrolls.
  useEffect(() => {
    if (keeps || fold === "none") return;
    const until = rows.slice(0, wanted.current).filter((row) => row.kind === "group" || isAlone(row)).length;
    cache.setQueryData(queryKey, (old) => old && withoutPagesAfter(old, until));
  }, [folded.dataUpdatedAt]);

  const shown = fold === "none" ? list : folded;
  const failure = useLastError(shown, key);
  const { fetchNextPage } = shown;
  const onMore = useCallback(() => void fetchNextPage(), [fetchNextPage]);
  const search = useSearch(list.data?.pages, onMore, list.hasNextPage && !list.isFetchingNextPage && !list.isError);
  return {
    key,
    rows,
    asOf: shown.data?.pages[0]?.asOf,
    isPending: shown.isPending && !failure,
    isError: shown.isError || failure !== null,
    error: shown.error ?? failure,
    refetch: shown.refetch,
    hasMore: shown.hasNextPage,
    loadingMore: shown.isFetchingNextPage,
    /** Why the following page could not be loaded; null if it could. */
    moreFailure: shown.isFetchNextPageError ? shown.error : null,
    onMore,
    onView,
    search,
    toggleGroup: (id: string) =>
      setOpened((before) => {
        const after = new Set(before);
        if (!after.delete(id)) after.add(id);
        return after;
      }),
    retryGroup: (group: AlertGroup) =>
      cache.invalidateQueries({ queryKey: nestedAlerts(withinGroup(filter, group)).queryKey }),
  };
}

/** After this many pages without a result, a search asks whether to continue: some seconds. */
const emptyPages = 50;

/**
 * The progress of a text search, which reads some alerts for each page. It is undefined if the list
 * is not a text search, or is complete. While nothing is found, the search continues by itself,
 * until many pages had no result.
 */
function useSearch(pages: readonly AlertPage[] | undefined, onMore: () => void, can: boolean) {
  const [allowed, setAllowed] = useState(emptyPages);
  const searchedTo = pages?.at(-1)?.searchedTo;
  const foundNone = pages ? pages.length - 1 - pages.findLastIndex(({ items }) => items.length > 0) : 0;
  const waiting = searchedTo !== undefined && foundNone >= allowed;
  const goOn = searchedTo !== undefined && foundNone > 0 && can && !waiting;
  useEffect(() => {
    if (goOn) onMore();
  }, [goOn, onMore]);
  if (searchedTo === undefined) return undefined;
  return { searchedTo, waiting, onContinue: () => setAllowed(foundNone + emptyPages) };
}

/** In a folded list, the row of the open alert stays where it was when it has left the list. */
function useHeldRow(filterKey: string, rows: readonly Row[], open: Alert | undefined): readonly Row[] {
  const [held, setHeld] = useState({ key: "", at: 0 });
  const key = open ? `${filterKey} ${open.id}` : "";
  const at = open ? rows.findIndex(({ id }) => id === open.id) : -1;
  if (at >= 0 && (held.key !== key || held.at !== at)) setHeld({ key, at });
  return useMemo(() => {
    if (!open || at >= 0 || held.key !== key) return rows;
    return [
      ...rows.slice(0, held.at),
      { kind: "alert", id: open.id, alert: open, nested: false },
      ...rows.slice(held.at),
    ];
  }, [rows, open, at, held, key]);
}

/** The open alert, once the list with this filter has contained it: it keeps its row when it leaves the filter. */
function usePinned(filterKey: string, listed: readonly Alert[], open: Alert | undefined): Alert | undefined {
  const [held, setHeld] = useState("");
  const key = open ? `${filterKey} ${open.id}` : "";
  const isListed = open !== undefined && listed.some((row) => row.id === open.id);
  if (isListed && held !== key) setHeld(key);
  return open && held === key ? open : undefined;
}
