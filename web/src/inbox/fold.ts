import type { InfiniteData } from "@tanstack/react-query";
import type { AlertFilter } from "../api/alerts";
import type { Alert, AlertGroup, AlertGroupPage } from "../api/client";
import type { Folding } from "./filter";

type Groups = InfiniteData<AlertGroupPage>;

/** One line of the inbox. Its id is the alert's own, or that of the group. */
export type Row =
  | { kind: "alert"; id: string; alert: Alert; nested: boolean }
  | { kind: "group"; id: string; group: AlertGroup; open: boolean }
  | { kind: "rest"; id: string; group: AlertGroup; shown: number; state: "loading" | "failed" | "more" | "all" };

/** The alerts of an opened group: undefined while they are being loaded, null if that failed. */
export type Opened = ReadonlyMap<string, readonly Alert[] | undefined | null>;

/** Each alert in its own row. For an alert in `known`, the row is the same object as before. */
export function alertRows(alerts: readonly Alert[], known = new WeakMap<Alert, Row>()): readonly Row[] {
  return alerts.map((alert) => {
    const row: Row = known.get(alert) ?? { kind: "alert", id: alert.id, alert, nested: false };
    known.set(alert, row);
    return row;
  });
}

/** Whether a row is that of a group of one alert. */
export const isAlone = (row: Row): boolean => row.kind === "alert" && !row.nested;

/** The pages up to the one that contains the group at an index. */
export function withoutPagesAfter(groups: Groups, index: number): Groups {
  let sum = 0;
  const last = groups.pages.findIndex(({ items }) => {
    sum += items.length;
    return sum > index;
  });
  if (last < 0 || last === groups.pages.length - 1) return groups;
  return { pages: groups.pages.slice(0, last + 1), pageParams: groups.pageParams.slice(0, last + 1) };
}

export function groupId({ ruleId, signature, application, route }: AlertGroup): string {
  if (application !== undefined) return `issue ${JSON.stringify([application, route, signature])}`;
  return ruleId === undefined ? `signature ${signature ?? ""}` : `rule ${ruleId}`;
}

/**
 * A group of one alert is that alert; an opened group has its alerts below it. For a group or an
 * alert in `known`, the row is the same object as before.
 */
export function groupRows(
  groups: readonly AlertGroup[],
  opened: Opened,
  known = new WeakMap<Alert | AlertGroup, Row>(),
): readonly Row[] {
  return groups.flatMap((group): Row[] => {
    const id = groupId(group);
    const open = opened.has(id);
    const before = known.get(group);
    const row = before && !(before.kind === "group" && before.open !== open) ? before : rowOfGroup(group, id, open);
    known.set(group, row);
    if (row.kind !== "group" || !open) return [row];
    const alerts = opened.get(id);
    const shown = alerts?.length ?? 0;
    const rest = (state: "loading" | "failed" | "more" | "all"): Row => ({
      kind: "rest",
      id: `${id} rest`,
      group,
      shown,
      state,
    });
    if (alerts === undefined) return [row, rest("loading")];
    if (alerts === null) return [row, rest("failed")];
    return [
      row,
      ...alerts.map((alert) => {
        const below: Row = known.get(alert) ?? { kind: "alert", id: alert.id, alert, nested: true };
        known.set(alert, below);
        return below;
      }),
      // An issue has its own page, with a link to it.
      ...(shown < group.count ? [rest("more")] : group.application !== undefined ? [rest("all")] : []),
    ];
  });
}

function rowOfGroup(group: AlertGroup, id: string, open: boolean): Row {
  if (group.count > 1) return { kind: "group", id, group, open };
  const alert = { ...group.newest, unread: group.unread > 0 };
  return { kind: "alert", id: alert.id, alert, nested: false };
}

/** The filter that only the alerts of a group match. */
export function withinGroup(filter: AlertFilter, group: AlertGroup): AlertFilter {
  const { ruleId, signature, application, route = "" } = group;
  if (application !== undefined) {
    return { ...filter, application: [application], route: [route], signature: [signature ?? ""], perExchange: true };
  }
  return ruleId === undefined ? { ...filter, signature: [signature ?? ""] } : { ...filter, ruleId: [ruleId] };
}

/** The row of an alert: its own or, if it is folded, that of its group. */
export function rowOf(
  rows: readonly Row[],
  alert: Pick<Alert, "id" | "ruleId" | "signature" | "exchange">,
): Row | undefined {
  const { id, ruleId, signature, exchange } = alert;
  const holds = (group: AlertGroup) => {
    if (group.ruleId !== undefined) return group.ruleId === ruleId;
    if (signature === undefined || group.signature !== signature) return false;
    return (
      group.application === undefined ||
      (group.application === exchange?.application && (group.route ?? "") === exchange.route)
    );
  };
  return (
    rows.find((row) => row.kind === "alert" && row.id === id) ??
    rows.find((row) => row.kind === "group" && holds(row.group))
  );
}

/** What the alerts of a folded row have in common. */
export function groupTitle({ ruleId, ruleName, signature }: AlertGroup): string {
  if (ruleId !== undefined) return ruleName || "Deleted rule";
  return signature || "No error";
}

export const folds: readonly { value: Folding; label: string }[] = [
  { value: "issue", label: "By issue" },
  { value: "rule", label: "By rule" },
  { value: "signature", label: "By error" },
  { value: "none", label: "Each alert" },
];
