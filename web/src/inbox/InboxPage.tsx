import { useMediaQuery } from "@mantine/hooks";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type AlertFilter, alertCounts, alertList } from "../api/alerts";
import type { Alert } from "../api/client";
import { ruleList } from "../api/rules";
import { Page } from "../app/Page";
import { buttonClass } from "../ui/Button";
import { IconInbox, IconResolved, IconRules, IconSearch } from "../ui/icons";
import { useKeys } from "../ui/keys";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import { AlertDetail, useOpenAlert } from "./AlertDetail";
import { AlertList } from "./AlertList";
import { rowHeight } from "./AlertRow";
import { type Action, useAlertAction } from "./actions";
import { Filters, StateTabs } from "./Filters";
import { isNarrowed, toFilter, toSearch } from "./filter";
import styles from "./InboxPage.module.css";
import { canBecome, step, successor, withPinned } from "./rows";

const noRows: readonly Alert[] = [];

/** The inbox: the list, and beside it the alert that is open. The address holds the filter and the open alert. */
export function InboxPage() {
  const search = useSearch({ from: "/inbox" });
  const { alertId: openId } = useParams({ strict: false });
  const navigate = useNavigate();
  const filter = useMemo(() => toFilter(search), [search]);
  const filterKey = JSON.stringify(filter);
  const split = useMediaQuery("(min-width: 1024px)", window.matchMedia("(min-width: 1024px)").matches);

  const list = useInfiniteQuery(alertList(filter));
  const listed = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? noRows, [list.data]);
  const open = useOpenAlert(openId);
  const rows = withPinned(listed, usePinned(filterKey, listed, open.data));
  const ids = rows.map((row) => row.id);

  const [pointedAt, setCursorId] = useState<string>();
  const cursorId = (split ? openId : undefined) ?? pointedAt;

  const act = useAlertAction();
  const searchField = useRef<HTMLInputElement>(null);

  const show = useCallback(
    (id: string | undefined, replace = false) =>
      id === undefined
        ? navigate({ to: "/inbox", search: true, replace })
        : navigate({ to: "/inbox/$alertId", params: { alertId: id }, search: true, replace }),
    [navigate],
  );

  const perform = (action: Action) => {
    // Under the cursor alone, the row is about to leave the list; the next one takes over. An open alert stays.
    if (action.alert.id !== openId) setCursorId(successor(ids, action.alert.id));
    act.mutate(action);
  };
  const performHere = (to: Action["to"]) => {
    const alert = openId === undefined ? rows.find((row) => row.id === cursorId) : open.data;
    if (!alert || !canBecome(alert, to)) return false;
    perform({ alert, to });
    return true;
  };
  const move = (by: 1 | -1) => {
    if (openId !== undefined && !split) return false;
    const to = step(ids, cursorId, by);
    if (to === undefined) return false;
    setCursorId(to);
    if (openId !== undefined) void show(to, true);
    return true;
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    arrowdown: () => openId === undefined && move(1),
    arrowup: () => openId === undefined && move(-1),
    a: () => performHere("ACKNOWLEDGED"),
    r: () => performHere("RESOLVED"),
    enter: () => (openId === undefined && cursorId !== undefined ? show(cursorId) : false),
    escape: () => {
      if (openId === undefined) return false;
      setCursorId(openId);
      return show(undefined);
    },
    "/": () => searchField.current?.focus(),
  });

  const { data: counts } = useQuery(alertCounts());
  const firing = counts?.firing;
  useEffect(() => {
    document.title = firing ? `(${firing}) Inbox · Tocsin` : "Inbox · Tocsin";
  }, [firing]);

  const onMore = useCallback(() => void list.fetchNextPage(), [list.fetchNextPage]);

  if (openId !== undefined && !split) {
    return (
      <Page title="Alert" bare>
        <AlertDetail key={openId} id={openId} alone onAct={perform} />
      </Page>
    );
  }
  return (
    <Page
      title="Inbox"
      titleHidden
      header={
        <>
          <StateTabs filter={filter} />
          <Filters
            filter={filter}
            onChange={(next) => void navigate({ to: ".", search: toSearch(next), replace: true })}
            searchRef={searchField}
          />
        </>
      }
    >
      <div className={openId === undefined ? styles.panes : `${styles.panes} ${styles.split}`}>
        <div className={styles.list}>
          <div className={styles.grow}>
            {list.isPending ? (
              <SkeletonRows count={12} height={split ? rowHeight.wide : rowHeight.narrow} label="Loading alerts" />
            ) : rows.length > 0 ? (
              <AlertList
                key={filterKey}
                rows={rows}
                state={filter.state}
                selectedId={openId}
                cursorId={cursorId}
                onPoint={setCursorId}
                hasMore={list.hasNextPage}
                loadingMore={list.isFetchingNextPage}
                onMore={onMore}
              />
            ) : list.isError ? (
              <Failed error={list.error} onRetry={() => void list.refetch()} />
            ) : (
              <NoAlerts filter={filter} />
            )}
          </div>
          <KeyHelp />
        </div>
        {openId !== undefined && <AlertDetail key={openId} id={openId} alone={false} onAct={perform} />}
      </div>
    </Page>
  );
}

/** The open alert, once the list under this filter has held it: it keeps its row when it leaves the filter. */
function usePinned(filterKey: string, listed: readonly Alert[], open: Alert | undefined): Alert | undefined {
  const [held, setHeld] = useState("");
  const key = open ? `${filterKey} ${open.id}` : "";
  const isListed = open !== undefined && listed.some((row) => row.id === open.id);
  if (isListed && held !== key) setHeld(key);
  return open && held === key ? open : undefined;
}

function NoAlerts({ filter }: { filter: AlertFilter }) {
  const { data: rules } = useQuery({ ...ruleList(), refetchInterval: false });
  if (isNarrowed(filter)) {
    return (
      <Empty icon={IconSearch} title="No alert fits this filter">
        <p>
          <Link to="/inbox" search={toSearch({ ...filter, severity: [], application: [], ruleId: [], q: "" })}>
            Show all that are {filter.state.toLowerCase()}
          </Link>
        </p>
      </Empty>
    );
  }
  if (rules?.length === 0) {
    return (
      <Empty icon={IconRules} title="No rule looks at anything yet">
        <p>A rule says which exchanges are worth an alert, and whom to tell.</p>
        <Link to="/rules/new" className={buttonClass("primary")}>
          Create the first rule
        </Link>
      </Empty>
    );
  }
  switch (filter.state) {
    case "FIRING":
      return (
        <Empty icon={IconResolved} title="Nothing is firing">
          <p>New alerts appear here by themselves.</p>
        </Empty>
      );
    case "ACKNOWLEDGED":
      return (
        <Empty icon={IconInbox} title="Nobody is on anything">
          <p>Alerts that somebody has taken on, and not yet resolved, stand here.</p>
        </Empty>
      );
    case "PENDING":
      return (
        <Empty icon={IconInbox} title="Nothing is pending">
          <p>Counts that have reached their threshold, but not for long enough to fire, stand here.</p>
        </Empty>
      );
    case "RESOLVED":
      return <Empty icon={IconInbox} title="Nothing has been resolved yet" />;
  }
}

function KeyHelp() {
  return (
    <p className={styles.keys}>
      <span>
        <kbd>j</kbd> <kbd>k</kbd> move
      </span>
      <span>
        <kbd>Enter</kbd> open
      </span>
      <span>
        <kbd>a</kbd> acknowledge
      </span>
      <span>
        <kbd>r</kbd> resolve
      </span>
      <span>
        <kbd>/</kbd> search
      </span>
      <span>
        <kbd>Esc</kbd> close
      </span>
    </p>
  );
}
