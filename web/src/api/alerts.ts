import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type Alert, type AlertState, body, client, type Notification, type Severity } from "./client";

/** What of the inbox a list shows. Empty lists and an empty text are no restriction. */
export interface AlertFilter {
  state: AlertState;
  severity: readonly Severity[];
  application: readonly string[];
  ruleId: readonly string[];
  q: string;
}

export const alertKeys = {
  all: ["alerts"] as const,
  lists: ["alerts", "list"] as const,
  list: (filter: AlertFilter) => ["alerts", "list", filter] as const,
  counts: ["alerts", "counts"] as const,
  ones: ["alerts", "one"] as const,
  one: (id: string) => ["alerts", "one", id] as const,
  timelines: ["alerts", "notifications"] as const,
  notifications: (id: string) => ["alerts", "notifications", id] as const,
};

const pageSize = 100;

export function alertList(filter: AlertFilter) {
  return infiniteQueryOptions({
    queryKey: alertKeys.list(filter),
    queryFn: ({ pageParam, signal }) =>
      body(
        client.GET("/alerts", {
          signal,
          params: {
            query: {
              state: [filter.state],
              severity: [...filter.severity],
              application: [...filter.application],
              ruleId: [...filter.ruleId],
              limit: pageSize,
              ...(filter.q ? { q: filter.q } : {}),
              ...(pageParam ? { cursor: pageParam } : {}),
            },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
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

const owedPollMs = 2_000;

/** An alert's notifications. No event tells of deliveries, so this asks again while one is owed. */
export function alertNotifications(id: string) {
  return queryOptions({
    queryKey: alertKeys.notifications(id),
    queryFn: async ({ signal }) =>
      (await body(client.GET("/alerts/{id}/notifications", { signal, params: { path: { id } } }))).items,
    refetchInterval: (query) => (query.state.data?.some(isOwed) ? owedPollMs : false),
  });
}

export function isOwed(notification: Notification): boolean {
  return notification.status === "PENDING" || notification.status === "RETRYING";
}

export function acknowledge(id: string): Promise<Alert> {
  return body(client.POST("/alerts/{id}/acknowledge", { params: { path: { id } } }));
}

export function resolve(id: string): Promise<Alert> {
  return body(client.POST("/alerts/{id}/resolve", { params: { path: { id } } }));
}
