import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import {
  type Alert,
  type AlertPage,
  type AlertSelection,
  type AlertState,
  type BulkResult,
  body,
  client,
  type DeliverySummary,
  type Notification,
  type Severity,
  type UndoResult,
} from "./client";

/** A filter of the inbox. Empty lists, an empty text and false are no restriction. */
export interface AlertFilter {
  state: AlertState;
  severity: readonly Severity[];
  application: readonly string[];
  ruleId: readonly string[];
  /** The errors of the exchanges; the empty text means alerts without an error. */
  signature: readonly string[];
  /** The routes of the exchanges; set when an issue is opened. */
  route: readonly string[];
  environment: readonly string[];
  executionId: string;
  correlationId: string;
  /** Each as key=value; all must match. */
  attribute: readonly string[];
  /** Fired within this number of hours before now; 0 is no restriction. */
  hours: number;
  /** Fired between these instants; an empty one is no restriction. */
  from: string;
  to: string;
  q: string;
  mine: boolean;
  /** Who alerts are assigned to; the empty text means nobody. */
  assignee: readonly string[];
  /** Whether alerts are snoozed; "any" is no restriction. */
  snoozed: "any" | "yes" | "no";
  unread: boolean;
  /** Only alerts about one exchange each, of which issues consist; set when an issue is opened. */
  perExchange: boolean;
}

/** How alerts are folded. */
export type Fold = "issue" | "rule" | "signature";

export const alertKeys = {
  all: ["alerts"] as const,
  lists: ["alerts", "list"] as const,
  list: (filter: AlertFilter) => ["alerts", "list", filter] as const,
  groups: ["alerts", "groups"] as const,
  nested: ["alerts", "nested"] as const,
  issues: ["alerts", "issue"] as const,
  totals: ["alerts", "total"] as const,
  found: ["alerts", "found"] as const,
  counts: ["alerts", "counts"] as const,
  ones: ["alerts", "one"] as const,
  one: (id: string) => ["alerts", "one", id] as const,
  timelines: ["alerts", "notifications"] as const,
  notifications: (id: string) => ["alerts", "notifications", id] as const,
};

const pageSize = 100;

function queryOf(filter: AlertFilter) {
  const { state, severity, application, ruleId, signature, route, environment, attribute, mine, unread, perExchange } =
    filter;
  const { q, executionId, correlationId, hours, to } = filter;
  const from = filter.from || (hours > 0 ? new Date(Date.now() - hours * 3_600_000).toISOString() : "");
  return {
    state: [state],
    severity: [...severity],
    application: [...application],
    ruleId: [...ruleId],
    signature: [...signature],
    route: [...route],
    environment: [...environment],
    attribute: [...attribute],
    assignee: [...filter.assignee],
    ...(executionId ? { executionId } : {}),
    ...(correlationId ? { correlationId } : {}),
    ...(from ? { from } : {}),
    ...(to ? { to } : {}),
    ...(q ? { q } : {}),
    ...(mine ? { mine } : {}),
    ...(filter.snoozed === "any" ? {} : { snoozed: filter.snoozed === "yes" }),
    ...(unread ? { unread } : {}),
    ...(perExchange ? { perExchange } : {}),
  };
}

/** One page of a list; the first for an empty cursor. */
export function alertPage(filter: AlertFilter, cursor: string, signal?: AbortSignal): Promise<AlertPage> {
  return body(
    client.GET("/alerts", {
      ...(signal ? { signal } : {}),
      params: { query: { ...queryOf(filter), limit: pageSize, ...(cursor ? { cursor } : {}) } },
    }),
  );
}

/** How many alerts one request names by their ids. */
export const mostChanged = 200;

/** Those of these alerts that match. */
export function changedAlerts(filter: AlertFilter, ids: readonly string[]): Promise<AlertPage> {
  return body(client.GET("/alerts", { params: { query: { ...queryOf(filter), id: [...ids], limit: mostChanged } } }));
}

/** Whether an alert, or a group, has messages that are not delivered yet. */
export function isUndelivered({ delivery }: { delivery?: DeliverySummary }): boolean {
  if (!delivery) return false;
  const { total, delivered, failed, suppressed, discarded } = delivery;
  return delivered + failed + suppressed + discarded < total;
}

export function alertList(filter: AlertFilter) {
  return infiniteQueryOptions({
    queryKey: alertKeys.list(filter),
    queryFn: ({ pageParam, signal }) => alertPage(filter, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
  });
}

const mostFound = 6;
const mostPages = 5;

/** The newest alerts with a text, in any state, as far back as a few pages reach. */
export function findAlerts(q: string) {
  return queryOptions({
    queryKey: [...alertKeys.found, q],
    queryFn: async ({ signal }) => {
      const items: Alert[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < mostPages && items.length < mostFound; page++) {
        const query = { q, limit: mostFound, ...(cursor ? { cursor } : {}) };
        const answer = await body(client.GET("/alerts", { signal, params: { query } }));
        items.push(...answer.items);
        cursor = answer.nextCursor;
        if (!cursor) break;
      }
      return items.slice(0, mostFound);
    },
  });
}

/** How long exchanges like that of an alert usually take. The result does not change. */
export function usualDuration(id: string) {
  return queryOptions({
    queryKey: ["usualDuration", id] as const,
    queryFn: ({ signal }) => body(client.GET("/alerts/{id}/usual-duration", { signal, params: { path: { id } } })),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
}

/** The matching alerts, folded: the group with the newest alert first, with the counts of its messages. */
export function alertGroups(filter: AlertFilter, by: Fold) {
  return groupsOf(filter, by, { limit: pageSize, deliveries: true });
}

/** The first matching issues, without the counts of their messages. */
export function firstIssues(filter: AlertFilter, limit: number) {
  return groupsOf(filter, "issue", { limit });
}

function groupsOf(filter: AlertFilter, by: Fold, how: { limit: number; deliveries?: true }) {
  return infiniteQueryOptions({
    queryKey: [...alertKeys.groups, by, filter, how],
    queryFn: ({ pageParam, signal }) =>
      body(
        client.GET("/alerts/groups", {
          signal,
          params: { query: { by, ...queryOf(filter), ...how, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
  });
}

/** The newest alerts of an opened group. */
export function nestedAlerts(filter: AlertFilter) {
  return queryOptions({
    queryKey: [...alertKeys.nested, filter],
    queryFn: ({ signal }) => alertPage(filter, "", signal),
  });
}

/** How many alerts match. */
export function alertTotal(filter: AlertFilter) {
  return queryOptions({
    queryKey: [...alertKeys.totals, filter],
    queryFn: async ({ signal }) => {
      let total = 0;
      for (let cursor: string | undefined; ; ) {
        const query = { by: "rule" as const, ...queryOf(filter), limit: 200, ...(cursor ? { cursor } : {}) };
        const page = await body(client.GET("/alerts/groups", { signal, params: { query } }));
        total += page.items.reduce((sum, group) => sum + group.count, 0);
        cursor = page.nextCursor;
        if (!cursor) return total;
      }
    },
  });
}

export function alertCounts() {
  return queryOptions({
    queryKey: alertKeys.counts,
    queryFn: ({ signal }) => body(client.GET("/alerts/counts", { signal })),
  });
}

export function oneAlert(id: string) {
  return queryOptions({
    queryKey: alertKeys.one(id),
    queryFn: ({ signal }) => body(client.GET("/alerts/{id}", { signal, params: { path: { id } } })),
  });
}

const pendingPollMs = 2_000;

/** An alert's notifications. No event announces deliveries, so the query is repeated while one is pending. */
export function alertNotifications(id: string) {
  return queryOptions({
    queryKey: alertKeys.notifications(id),
    queryFn: async ({ signal }) =>
      (await body(client.GET("/alerts/{id}/notifications", { signal, params: { path: { id } } }))).items,
    refetchInterval: (query) => (query.state.data?.some(isPending) ? pendingPollMs : false),
  });
}

export function isPending(notification: Notification): boolean {
  return notification.status === "PENDING" || notification.status === "RETRYING";
}

/** The filter as the body of an action. */
export function filterBody(filter: AlertFilter) {
  return queryOf(filter);
}

/** Acknowledges or resolves all selected alerts, or none. The selection's `actionId` makes a repetition harmless. */
export function changeAlerts(to: "ACKNOWLEDGED" | "RESOLVED", selection: AlertSelection): Promise<BulkResult> {
  return body(
    to === "ACKNOWLEDGED"
      ? client.POST("/alerts/acknowledge", { body: selection })
      : client.POST("/alerts/resolve", { body: selection }),
  );
}

/** Who is to handle alerts; empty means nobody. Alerts that others handle are only included with `reassign`. */
export interface Handover {
  assignee: string;
  reassign: boolean;
}

/** Assigns all selected alerts, or none, like `changeAlerts`. */
export function assignAlerts(to: Handover, selection: AlertSelection): Promise<BulkResult> {
  const { holdUntil: _, ...which } = selection;
  return body(client.POST("/alerts/assign", { body: { ...which, ...to } }));
}

/** Assigns an alert to somebody; empty means nobody. If `was` is not the assignee any more, it is refused. */
export function assignAlert(id: string, assignment: { assignee: string; was: string }): Promise<Alert> {
  return body(client.POST("/alerts/{id}/assign", { params: { path: { id } }, body: assignment }));
}

/** Snoozes an alert until an instant. */
export function snoozeAlert(id: string, until: string): Promise<Alert> {
  return body(client.POST("/alerts/{id}/snooze", { params: { path: { id } }, body: { until } }));
}

/** Cancels the snooze of an alert. */
export function unsnoozeAlert(id: string): Promise<Alert> {
  return body(client.POST("/alerts/{id}/unsnooze", { params: { path: { id } } }));
}

/** The people that alerts can be assigned to. */
export function assignees() {
  return queryOptions({
    queryKey: ["assignees"] as const,
    queryFn: async ({ signal }) => (await body(client.GET("/alerts/assignees", { signal }))).items,
  });
}

/** Restores what an action changed, if it was not changed since. */
export function undoAction(id: string): Promise<UndoResult> {
  return body(client.POST("/alerts/actions/{id}/undo", { params: { path: { id } } }));
}

/** Marks alerts as read or unread, only for the caller. */
export async function markRead(selection: AlertSelection, unread = false): Promise<void> {
  const { actionId: _, ...which } = selection;
  await body(client.POST("/alerts/read", { body: { ...which, unread } }));
}
