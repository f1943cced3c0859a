import { type AlertFilter, filterBody } from "../api/alerts";
import type { AlertSelection } from "../api/client";
import { type Row, withinGroup } from "./fold";

/** The rows that an action applies to. `all` is everything that matches the filter, loaded or not. */
export interface Selection {
  ids: ReadonlySet<string>;
  all: boolean;
  /** Where a range begins. */
  anchor: string | undefined;
}

export const nothing: Selection = { ids: new Set(), all: false, anchor: undefined };

export const isSome = ({ ids, all }: Selection): boolean => all || ids.size > 0;

const selectable = (row: Row) => row.kind !== "rest";

export function isSelected({ ids, all }: Selection, id: string): boolean {
  return all || ids.has(id);
}

/** Selects or deselects a row. When everything is selected, deselecting one leaves the other loaded rows. */
export function toggle(selection: Selection, rows: readonly Row[], id: string): Selection {
  const ids = new Set(selection.all ? rows.filter(selectable).map((row) => row.id) : selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { ids, all: false, anchor: id };
}

/** Selects all rows between the last selected one and this one. */
export function extend(selection: Selection, rows: readonly Row[], id: string): Selection {
  const to = rows.findIndex((row) => row.id === id);
  const from = rows.findIndex((row) => row.id === selection.anchor);
  if (to < 0 || from < 0) return toggle(selection, rows, id);
  const between = rows.slice(Math.min(from, to), Math.max(from, to) + 1).filter(selectable);
  return { ids: new Set([...selection.ids, ...between.map((row) => row.id)]), all: selection.all, anchor: id };
}

/** The selection without rows that left the filter, because nobody sees that they are selected. */
export function present(selection: Selection, rows: readonly Row[]): Selection {
  if (selection.all || selection.ids.size === 0) return selection;
  const known = new Set(rows.map((row) => row.id));
  const ids = new Set([...selection.ids].filter((id) => known.has(id)));
  return ids.size === selection.ids.size ? selection : { ...selection, ids };
}

const longestList = 1000;

/** The API's form of a selection, and the number of its alerts; undefined while it is unknown. */
export function order(
  selection: Selection,
  rows: readonly Row[],
  { filter, asOf, total }: { filter: AlertFilter; asOf: string | undefined; total: number | undefined },
): { parts: AlertSelection[]; count: number | undefined } {
  const upTo = asOf ? { upTo: asOf } : {};
  if (selection.all) return { parts: [{ filter: filterBody(filter), ...upTo }], count: total };
  const parts: AlertSelection[] = [];
  const ids: string[] = [];
  let count = 0;
  let inside = false;
  for (const row of rows) {
    if (row.kind === "group") {
      inside = selection.ids.has(row.id);
      if (!inside) continue;
      parts.push({ filter: filterBody(withinGroup(filter, row.group)), ...upTo });
      count += row.group.count;
    } else if (row.kind === "alert" && selection.ids.has(row.id) && !(inside && row.nested)) {
      ids.push(row.id);
      count++;
    }
  }
  for (let at = 0; at < ids.length; at += longestList) parts.push({ ids: ids.slice(at, at + longestList) });
  return { parts, count };
}
