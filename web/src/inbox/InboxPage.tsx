import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { isAtLeast, me } from "../api/access";
import { type AlertFilter, alertCounts, alertTotal } from "../api/alerts";
import type { Alert } from "../api/client";
import { Page } from "../frame/Page";
import { MasterDetail, useSplit } from "../ui/MasterDetail";
import { Failed, SkeletonRows } from "../ui/states";
import { alertsWord } from "../ui/words";
import { AlertDetail, useOpenAlert } from "./AlertDetail";
import { AlertList, SearchedTo, type View } from "./AlertList";
import { AssignDialog, useSelf } from "./Assignee";
import { type Action, useAlertAction } from "./actions";
import { useBulkAction, useReading } from "./bulk";
import { Filters, StateTabs } from "./Filters";
import { countedAs, type Folding, isNarrowed, toFilter, toFold, toSearch } from "./filter";
import { type Row, rowOf } from "./fold";
import styles from "./InboxPage.module.css";
import { KeyLine } from "./KeyLine";
import { NoAlerts } from "./NoAlerts";
import { rowHeight } from "./RowParts";
import { useReopen, useReopenable } from "./reopen";
import { canBecome, step, successor } from "./rows";
import { extend, isSome, nothing, order, present, type Selection, toggle } from "./selection";
import { canAll, Toolbar } from "./Toolbar";
import { useInboxCommands } from "./useInboxCommands";
import { useInboxRows } from "./useInboxRows";
import { Views } from "./Views";

/** The inbox: the list, and beside it the open alert. The address contains the filter and the open alert. */
export function InboxPage() {
  const search = useSearch({ from: "/inbox" });
  const { alertId: openId } = useParams({ strict: false });
  const navigate = useNavigate();
  const filter = useMemo(() => toFilter(search), [search]);
  const fold = toFold(search);
  const split = useSplit();
  const may = isAtLeast(useQuery(me()).data, "operator");

  const open = useOpenAlert(openId);
  const [chosen, setSelection] = useState<{ key: string; selection: Selection }>({ key: "", selection: nothing });
  const list = useInboxRows(filter, fold, open.data, isSome(chosen.selection));
  const { rows } = list;
  const ids = useMemo(() => rows.map((row) => row.id), [rows]);
  const [pointedAt, setCursorId] = useState<string>();
  useGoingOn(open.data?.id === openId ? open.data : undefined, openId, rows, setCursorId);
  const cursorId = (split ? openId : undefined) ?? pointedAt;

  const selection = chosen.key === list.key ? present(chosen.selection, rows) : nothing;
  const select = (next: Selection) => setSelection({ key: list.key, selection: next });
  // A selection has no effect while its list is not shown.
  const alone = openId !== undefined && !split;
  const some = isSome(selection) && !alone;
  const total = useTotal(filter, selection.all);
  const { parts, count } = order(selection, rows, { filter, asOf: list.asOf, total });

  const act = useAlertAction();
  const bulk = useBulkAction(() => setSelection({ key: "", selection: nothing }));
  const reading = useReading();
  useReadWhenOpen(open.data, open.isPlaceholderData, reading);
  const searchField = useRef<HTMLInputElement>(null);
  const view = useRef<View>(null);

  const show = useCallback(
    (id: string | undefined, replace = false) =>
      id === undefined
        ? navigate({ to: "/inbox", search: true, replace })
        : navigate({ to: "/inbox/$alertId", params: { alertId: id }, search: true, replace }),
    [navigate],
  );
  const narrow = (next: AlertFilter, nextFold: Folding) =>
    void navigate({ to: ".", search: toSearch(next, nextFold), replace: true });

  const perform = (action: Action) => {
    // If the row only has the cursor, it is about to leave the list, and the next row gets the
    // cursor. An open alert stays.
    if (action.alert.id !== openId) setCursorId(successor(ids, action.alert.id));
    act.mutate(action);
  };
  const here = rows.find((row) => row.id === cursorId);
  const alert = openId === undefined ? (here?.kind === "alert" ? here.alert : undefined) : open.data;
  /** The selection, or the row under the cursor if no alert is open. */
  const many = () => {
    if (some) return { parts, count };
    return order({ ...nothing, ids: new Set([here?.id ?? ""]) }, rows, { filter, asOf: list.asOf, total });
  };
  /**
   * How to apply the action to the selection, or to the open alert or the one under the cursor;
   * undefined if that is not possible.
   */
  const actOn = (to: Action["to"]) => {
    if (!may) return undefined;
    if (some || (openId === undefined && here?.kind === "group")) {
      if (bulk.isPending || !canAll(filter.state, to) || (some && !count)) return undefined;
      if (some) return () => bulk.run(to, parts);
      return () => {
        setCursorId(successor(ids, here?.id ?? ""));
        bulk.run(to, many().parts);
      };
    }
    return alert && canBecome(alert, to) ? () => perform({ alert, to }) : undefined;
  };
  const reopening = useReopen();
  const reopenable = useReopenable(alert) && may && !some && !reopening.isPending;
  const reopen = () => {
    if (alert === undefined) return;
    if (alert.id !== openId) setCursorId(successor(ids, alert.id));
    reopening.mutate(alert);
  };
  const self = useSelf();
  const [handing, setHanding] = useState<ReturnType<typeof many>>();
  // An open alert has its own button and field.
  const assignable =
    may &&
    canAll(filter.state, "RESOLVED") &&
    (some ? (count ?? 0) > 0 : openId === undefined && here !== undefined && here.kind !== "rest");
  const take =
    assignable && self !== undefined ? () => bulk.run({ assignee: self, reassign: false }, many().parts) : undefined;
  const assign = assignable ? () => setHanding(many()) : undefined;
  const move = (by: 1 | -1, range: boolean, event?: KeyboardEvent) => {
    if (openId !== undefined && (!split || event?.key.startsWith("Arrow"))) return false;
    // A person who has scrolled away continues where they look, unless an alert is open or a range
    // is being selected.
    const seen = view.current;
    const away = openId === undefined && !range && seen !== null && !seen.shows(cursorId);
    const to = step(ids, away ? undefined : cursorId, by, seen?.first());
    if (to === undefined) return false;
    setCursorId(to);
    if (range) select(extend(cursorId ? { ...selection, anchor: cursorId } : selection, rows, to));
    else if (openId !== undefined) void show(to, true);
    return true;
  };
  useInboxCommands({
    alert,
    open: openId !== undefined,
    selected: some ? (count ?? 0) : 0,
    act: actOn,
    reopen: reopenable ? reopen : undefined,
    take: bulk.isPending ? undefined : take,
    assign: bulk.isPending ? undefined : assign,
    move,
    toggle: (range) =>
      alone || cursorId === undefined ? false : select((range ? extend : toggle)(selection, rows, cursorId)),
    openRow: () => (openId === undefined && here?.kind === "alert" ? show(cursorId) : false),
    close: () => {
      if (some) return select(nothing);
      return openId === undefined ? false : show(undefined);
    },
    mark: (marked) => reading.mark({ alert: marked, unread: !marked.unread }),
    search: () => searchField.current?.focus(),
  });
  useTitle();
  const [views, setViews] = useState(false);

  if (alone) {
    return (
      <Page title="Alert" bare>
        <AlertDetail key={openId} id={openId} alone may={may} onAct={perform} />
      </Page>
    );
  }
  return (
    <Page
      title="Inbox"
      titleHidden
      header={
        <>
          <StateTabs filter={filter} fold={fold} />
          <Filters filter={filter} onChange={(next) => narrow(next, fold)} searchRef={searchField} />
        </>
      }
    >
      <MasterDetail
        list={
          <>
            <Toolbar
              filter={filter}
              fold={fold}
              onFilter={narrow}
              selection={selection}
              count={count}
              onAll={(all) => select(all ? { ...nothing, all } : nothing)}
              onAct={(to) => actOn(to)?.()}
              onTake={some ? take : undefined}
              onAssign={some ? assign : undefined}
              onRead={() => {
                reading.markMany(parts);
                select(nothing);
              }}
              onViews={() => setViews(true)}
              busy={bulk.isPending}
              empty={rows.length === 0}
              may={may}
            />
            <div className={styles.grow}>
              {list.isPending ? (
                <SkeletonRows
                  count={12}
                  height={split && openId === undefined ? rowHeight.wide : rowHeight.narrow}
                  label="Loading alerts"
                />
              ) : rows.length > 0 ? (
                <AlertList
                  key={list.key}
                  view={view}
                  rows={rows}
                  filter={filter}
                  openId={openId}
                  selection={selection}
                  onSelect={(id, range) => select((range ? extend : toggle)(selection, rows, id))}
                  onToggle={list.toggleGroup}
                  onRetry={list.retryGroup}
                  cursorId={cursorId}
                  onPoint={setCursorId}
                  hasMore={list.hasMore}
                  loadingMore={list.loadingMore}
                  onMore={list.onMore}
                  failure={list.moreFailure}
                  onView={list.onView}
                  search={list.search}
                />
              ) : list.isError ? (
                <Failed error={list.error} onRetry={list.refetch} />
              ) : list.search ? (
                <SearchedTo search={list.search} />
              ) : (
                <NoAlerts filter={filter} />
              )}
            </div>
            <KeyLine may={may} />
          </>
        }
        detail={
          openId !== undefined && (
            <AlertDetail key={openId} id={openId} alone={false} may={may} onAct={perform} selecting={some} />
          )
        }
      />
      {handing && (
        <AssignDialog
          what={handing.count === undefined ? "these alerts" : alertsWord(handing.count)}
          onAssign={(to) => bulk.run(to, handing.parts)}
          onClose={() => setHanding(undefined)}
        />
      )}
      {views && <Views search={search} onClose={() => setViews(false)} />}
    </Page>
  );
}

/**
 * When an alert is closed, its row has the cursor. If the row has left the list, the row in its
 * place has it.
 */
function useGoingOn(
  open: Alert | undefined,
  openId: string | undefined,
  rows: readonly Row[],
  point: (id: string | undefined) => void,
) {
  const before = useRef({ open, openId, rows });
  useLayoutEffect(() => {
    const { open: alert, openId: closed, rows: known } = before.current;
    before.current = { open: open ?? (openId === closed ? alert : undefined), openId, rows };
    if (closed === undefined || openId !== undefined) return;
    const ids = known.map(({ id }) => id);
    const row = alert && rowOf(rows, alert);
    point(row?.id ?? (rows.some(({ id }) => id === closed) || !ids.includes(closed) ? closed : successor(ids, closed)));
  }, [open, openId, rows, point]);
}

/** How many alerts match, if that is requested. The counts by state are already known. */
function useTotal(filter: AlertFilter, wanted: boolean): number | undefined {
  const { data: counts } = useQuery(alertCounts());
  const narrowed = isNarrowed(filter);
  const { data: total } = useQuery({ ...alertTotal(filter), enabled: wanted && narrowed });
  return narrowed ? total : counts?.[countedAs[filter.state]];
}

/** An open alert is read. */
function useReadWhenOpen(
  alert: ReturnType<typeof useOpenAlert>["data"],
  unsure: boolean,
  { mark }: ReturnType<typeof useReading>,
) {
  const read = useRef("");
  useEffect(() => {
    if (!alert || unsure || read.current === alert.id) return;
    read.current = alert.id;
    if (alert.unread) mark({ alert, unread: false });
  }, [alert, unsure, mark]);
}

function useTitle() {
  const { data: counts } = useQuery(alertCounts());
  const firing = counts?.firing;
  useEffect(() => {
    document.title = firing ? `(${firing}) Inbox · Tocsin` : "Inbox · Tocsin";
  }, [firing]);
}
