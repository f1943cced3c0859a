import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { memo, type Ref, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import type { AlertFilter } from "../api/alerts";
import type { AlertGroup } from "../api/client";
import { reasonOf } from "../api/errors";
import { Button } from "../ui/Button";
import { ClockTime } from "../ui/Instant";
import { IconNewer } from "../ui/icons";
import { TryAgain } from "../ui/TryAgain";
import { useWidth } from "../ui/useWidth";
import { alertsWord, counted } from "../ui/words";
import styles from "./AlertList.module.css";
import { AlertRow } from "./AlertRow";
import { groupTitle, type Row } from "./fold";
import { GroupRow, RestRow } from "./GroupRow";
import { type RowLook, rowHeight } from "./RowParts";
import { arrivals } from "./rows";
import { isSelected, type Selection } from "./selection";

const wideFrom = 860;
/** How many rows before the loaded end more rows are requested, so that they arrive before they are seen. */
const loadAhead = 72;
/** Placeholder rows for those that are not loaded yet, for fast scrolling. */
const ahead = 30;

/** What can be done with a row. */
interface RowActs {
  /** Selects or deselects a row; with `range`, all rows up to it. */
  onSelect: (id: string, range: boolean) => void;
  onToggle: (groupId: string) => void;
  /** Reads an opened group again. */
  onRetry: (group: AlertGroup) => unknown;
  onPoint: (id: string) => void;
}

/** The visible part of the list. */
export interface View {
  shows: (id: string | undefined) => boolean;
  /** The first row in view. */
  first: () => string | undefined;
}

interface Props extends RowActs {
  view: Ref<View>;
  rows: readonly Row[];
  filter: AlertFilter;
  /** The open alert beside the list. */
  openId: string | undefined;
  selection: Selection;
  cursorId: string | undefined;
  hasMore: boolean;
  loadingMore: boolean;
  onMore: () => void;
  /** Why older alerts could not be loaded; null if they could. They are then loaded when a person asks. */
  failure: Error | null;
  /** Says before which row the list has all that it needs at present. */
  onView: (until: number) => void;
  /** The progress of a text search. */
  search: Search | undefined;
}

/**
 * The rows of the inbox, of which only those in view exist. New rows are added at the top. If a
 * person has scrolled down, the row that they look at stays in its place, and they see how many
 * rows were added.
 */
export function AlertList(props: Props) {
  const { rows, openId, cursorId, hasMore, loadingMore, failure, onMore, onView, search } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const wide = useWidth(scroller) >= wideFrom;
  const height = wide ? rowHeight.wide : rowHeight.narrow;

  const waiting = search?.waiting ?? false;
  const coming = hasMore && !search && !failure ? ahead : 0;
  const cursorAt = cursorId === undefined ? -1 : rows.findIndex((row) => row.id === cursorId);
  const virtual = useVirtualizer({
    count: rows.length + coming,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    getItemKey: (index) => rows[index]?.id ?? index,
    overscan: 12,
    // The row with the focus stays, wherever the list is scrolled to: without it, keys would have
    // no effect.
    rangeExtractor: (range) => {
      const shown = defaultRangeExtractor(range);
      if (cursorAt < 0 || cursorAt >= range.count) return shown;
      if (cursorAt < (shown[0] ?? 0)) return [cursorAt, ...shown];
      return cursorAt > (shown.at(-1) ?? 0) ? [...shown, cursorAt] : shown;
    },
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows are measured again when their height changes.
  useLayoutEffect(() => virtual.measure(), [virtual, height]);

  const news = useNews(rows, scroller, height);

  const inView = virtual.range ?? { startIndex: 0, endIndex: 0 };
  const last = inView.endIndex;
  useImperativeHandle(props.view, () => ({
    shows: (id) => rows.slice(inView.startIndex, inView.endIndex + 1).some((row) => row.id === id),
    first: () => rows[inView.startIndex]?.id,
  }));
  useEffect(() => onView(last + loadAhead + 1), [last, onView]);
  useEffect(() => {
    if (hasMore && !loadingMore && !failure && !waiting && last >= rows.length - loadAhead) onMore();
  }, [hasMore, loadingMore, failure, waiting, last, rows.length, onMore]);

  // Keys move the cursor. The row scrolls into view and takes the focus, so that a screen reader
  // reads it.
  const pointed = useRef(cursorId);
  useLayoutEffect(() => {
    if (cursorId === undefined || cursorId === pointed.current) return;
    pointed.current = cursorId;
    if (cursorAt < 0) return;
    virtual.scrollToIndex(cursorAt, { align: "auto" });
    rowIn(scroller.current, cursorId)?.focus({ preventScroll: true });
  }, [cursorId, cursorAt, virtual]);

  // A person who closes an alert continues at its row, unless the focus is already elsewhere.
  const returning = useRef(openId === undefined && cursorId !== undefined);
  useLayoutEffect(() => {
    if (openId !== undefined) returning.current = true;
  }, [openId]);
  useLayoutEffect(() => {
    if (!returning.current || openId !== undefined || cursorAt < 0) return;
    if (document.activeElement !== document.body) {
      returning.current = false;
      return;
    }
    const row = rowIn(scroller.current, cursorId);
    if (row) {
      returning.current = false;
      row.focus({ preventScroll: true });
    }
    virtual.scrollToIndex(cursorAt, { align: "auto" });
  });

  const latest = useRef(props);
  useLayoutEffect(() => {
    latest.current = props;
  });
  const [acts] = useState<RowActs>(() => ({
    onSelect: (id, range) => latest.current.onSelect(id, range),
    onToggle: (id) => latest.current.onToggle(id),
    onRetry: (group) => latest.current.onRetry(group),
    onPoint: (id) => {
      pointed.current = id;
      latest.current.onPoint(id);
    },
  }));

  const reachable = cursorAt >= 0 ? cursorId : rows[inView.startIndex]?.id;

  return (
    <div className={styles.frame}>
      {news.unseen > 0 && (
        <button type="button" className={styles.newer} onClick={() => scroller.current?.scrollTo({ top: 0 })}>
          <IconNewer size={14} stroke={2.2} aria-hidden="true" />
          {news.unseen} new
        </button>
      )}
      <div ref={scroller} className={styles.scroller} tabIndex={-1}>
        <ul className={styles.rows} style={{ height: virtual.getTotalSize() }} aria-label="Alerts">
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (!row) return <Coming key={item.key} height={height} start={item.start} />;
            return (
              <li
                key={row.id}
                aria-setsize={hasMore ? -1 : rows.length}
                aria-posinset={item.index + 1}
                style={{ height, transform: `translateY(${item.start}px)` }}
              >
                <Line
                  row={row}
                  wide={wide}
                  selected={row.id === openId}
                  cursor={row.id === cursorId}
                  reachable={row.id === reachable}
                  fresh={news.fresh.has(row.id)}
                  checked={isSelected(props.selection, row.id)}
                  filter={props.filter}
                  acts={acts}
                />
              </li>
            );
          })}
        </ul>
        {loadingMore && !search && (
          <p className="visually-hidden" role="status">
            Loading older alerts…
          </p>
        )}
        {search && !failure && <SearchedTo search={search} />}
        {failure && (
          <p className={styles.end} role="alert">
            Older alerts could not be loaded. {reasonOf(failure)} <TryAgain onRetry={onMore} />
          </p>
        )}
        {!hasMore && rows.length > 30 && <p className={styles.end}>End of the list: {counted(rows.length, "row")}</p>}
      </div>
    </div>
  );
}

function rowIn(list: HTMLElement | null, id: string | undefined): HTMLElement | null {
  return list?.querySelector(`[data-alert="${CSS.escape(id ?? "")}"]`) ?? null;
}

/** The place of a row that is being loaded. */
function Coming({ height, start }: { height: number; start: number }) {
  return (
    <li aria-hidden="true" className={styles.coming} style={{ height, transform: `translateY(${start}px)` }}>
      <span />
      <span />
    </li>
  );
}

export interface Search {
  searchedTo: string;
  /** Whether it has found nothing for so long that it only continues on request. */
  waiting: boolean;
  onContinue: () => void;
}

/** How far back a search has looked, and a button to continue. */
export function SearchedTo({ search }: { search: Search }) {
  const { searchedTo, waiting, onContinue } = search;
  return (
    <p className={styles.end} role="status">
      {waiting ? "Nothing found since " : "Searching… back to "}
      <ClockTime at={searchedTo} stop />
      {waiting && (
        <>
          {" "}
          <Button onClick={onContinue}>Continue searching</Button>
        </>
      )}
    </p>
  );
}

interface LineProps extends Omit<RowLook, "onPoint"> {
  row: Row;
  checked: boolean;
  filter: AlertFilter;
  acts: RowActs;
}

/** Scrolling moves the list once per frame, and leaves the visible rows as they are. */
const Line = memo(function Line({ row, checked, filter, acts, ...rest }: LineProps) {
  if (row.kind === "rest") return <RestRow row={row} filter={filter} onRetry={() => acts.onRetry(row.group)} />;
  const name = row.kind === "alert" ? row.alert.title : `${alertsWord(row.group.count)}: ${groupTitle(row.group)}`;
  const look: RowLook = { ...rest, onPoint: acts.onPoint };
  return (
    <>
      {row.kind === "alert" ? (
        <AlertRow alert={row.alert} nested={row.nested} left={row.alert.state !== filter.state} {...look} />
      ) : (
        <GroupRow id={row.id} group={row.group} open={row.open} onToggle={acts.onToggle} {...look} />
      )}
      <label className={row.kind === "alert" && row.nested ? `${styles.check} ${styles.nested}` : styles.check}>
        <input
          type="checkbox"
          aria-label={`Select ${name}`}
          checked={checked}
          tabIndex={rest.reachable ? 0 : -1}
          onChange={(event) => acts.onSelect(row.id, (event.nativeEvent as MouseEvent).shiftKey)}
        />
      </label>
    </>
  );
});

const none: ReadonlySet<string> = new Set();

/** Adds new rows above, and keeps the reader's place. */
function useNews(rows: readonly Row[], scroller: React.RefObject<HTMLDivElement | null>, height: number) {
  const known = useRef<{ ids: readonly string[]; rows: readonly Row[] }>({ ids: [], rows: [] });
  const anchor = useRef({ index: 0, within: 0 });
  const [fresh, setFresh] = useState(none);
  const [unseen, setUnseen] = useState(0);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const onScroll = () => {
      const top = element.scrollTop;
      anchor.current = { index: Math.floor(top / height), within: top % height };
      if (top < height) setUnseen(0);
    };
    onScroll();
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => element.removeEventListener("scroll", onScroll);
  }, [scroller, height]);

  useLayoutEffect(() => {
    const before = known.current;
    if (before.rows === rows) return;
    const ids = rows.map((row) => row.id);
    known.current = { ids, rows };
    const element = scroller.current;
    if (!element) return;

    const came = arrivals(before.ids, ids);
    if (came.length > 0) setFresh(new Set(came));
    if (anchor.current.index === 0) return;
    if (came.length > 0) setUnseen((count) => count + came.length);
    // The first row in view that still exists stays where it was.
    for (let index = anchor.current.index; index < before.ids.length; index++) {
      const id = before.ids[index];
      const now = id === undefined ? -1 : ids.indexOf(id);
      if (now < 0) continue;
      const top = now * height + (index === anchor.current.index ? anchor.current.within : 0);
      if (now !== index) element.scrollTop = top;
      return;
    }
  }, [rows, scroller, height]);

  return { fresh, unseen };
}
