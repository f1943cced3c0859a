import { infiniteQueryOptions, type QueryClient, queryOptions } from "@tanstack/react-query";
import { alertKeys, isPending } from "./alerts";
import { body, client, type Notification, type NotificationPage, type NotificationStatus } from "./client";

/** A filter of notifications. Empty lists are no restriction. */
export interface NotificationFilter {
  status: readonly NotificationStatus[];
  webhookId: readonly string[];
  ruleId: readonly string[];
  alertId: readonly string[];
  digestId: readonly string[];
  silenceId: readonly string[];
  digestOfSilenceId: readonly string[];
  /** Created within this number of hours before now; 0 is no restriction. */
  hours: number;
  /** Text in the title of the alert, or an id. */
  q: string;
}

export const notificationKeys = {
  all: ["notifications"] as const,
  lists: ["notifications", "list"] as const,
  one: (id: string) => ["notifications", "one", id] as const,
};

const pageSize = 50;
const busyPollMs = 2_000;
const idlePollMs = 10_000;
const failedPollMs = 30_000;
/** A longer list is refreshed less often, in proportion to its length: it needs a call for each page. */
const pagesAtFullPace = 3;

function since({ hours }: Pick<NotificationFilter, "hours">): { from?: string } {
  return hours > 0 ? { from: new Date(Date.now() - hours * 3_600_000).toISOString() } : {};
}

function page(
  filter: NotificationFilter,
  cursor: string,
  limit: number,
  signal: AbortSignal,
): Promise<NotificationPage> {
  const { status, webhookId, ruleId, alertId, digestId, silenceId, digestOfSilenceId, q } = filter;
  // Rule and alert are known for the messages in a digest, but not for the digest.
  const onlyMessages = ruleId.length + alertId.length + digestId.length === 0;
  const lists = {
    status: [...status],
    webhookId: [...webhookId],
    ruleId: [...ruleId],
    alertId: [...alertId],
    digestId: [...digestId],
    silenceId: [...silenceId],
    digestOfSilenceId: [...digestOfSilenceId],
  };
  const query = { ...lists, ...since(filter), onlyMessages, limit, ...(q ? { q } : {}), ...(cursor ? { cursor } : {}) };
  return body(client.GET("/notifications", { signal, params: { query } }));
}

/** How long until a list is refreshed, by its loaded length. No event announces deliveries. */
export function pollMs(pages: readonly Pick<NotificationPage, "items">[]): number {
  const pace = pages.some(({ items }) => items.some(isPending)) ? busyPollMs : idlePollMs;
  return pace * Math.max(1, pages.length / pagesAtFullPace);
}

/** Notifications, newest first. */
export function notificationList(filter: NotificationFilter) {
  return infiniteQueryOptions({
    queryKey: [...notificationKeys.lists, filter],
    queryFn: ({ pageParam, signal }) => page(filter, pageParam, pageSize, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
    refetchInterval: ({ state: { data } }) => pollMs(data?.pages ?? []),
  });
}

/** The newest notifications, at most so many. */
export function newestNotifications(filter: NotificationFilter, limit: number) {
  return queryOptions({
    queryKey: [...notificationKeys.all, "newest", filter, limit],
    queryFn: async ({ signal }) => (await page(filter, "", limit, signal)).items,
    refetchInterval: ({ state: { data } }) => pollMs(data ? [{ items: data }] : []),
  });
}

/** How many messages have each status, for some webhooks and as far back as a filter reaches. */
export function notificationCounts({ webhookId, hours }: NotificationFilter) {
  return queryOptions({
    queryKey: [...notificationKeys.all, "counts", webhookId, hours] as const,
    queryFn: ({ signal }) =>
      body(
        client.GET("/notifications/counts", {
          signal,
          params: { query: { webhookId: [...webhookId], ...since({ hours }) } },
        }),
      ),
    refetchInterval: idlePollMs,
    retry: false,
  });
}

/** Where the API stops counting. */
export const mostCounted = 10_000;

/** How many messages failed for good. Counting only those is cheap. */
export function failedCounts() {
  return queryOptions({
    queryKey: [...notificationKeys.all, "failed"] as const,
    queryFn: async ({ signal }) => {
      const query = { status: ["FAILED" as const, "EXHAUSTED" as const] };
      const { failed, exhausted } = await body(client.GET("/notifications/counts", { signal, params: { query } }));
      return { failed, exhausted };
    },
    refetchInterval: failedPollMs,
    retry: false,
  });
}

/** A notification with its attempts. */
export function oneNotification(id: string) {
  return queryOptions({
    queryKey: notificationKeys.one(id),
    queryFn: ({ signal }) => body(client.GET("/notifications/{id}", { signal, params: { path: { id } } })),
    refetchInterval: (query) => (query.state.data && isPending(query.state.data) ? busyPollMs : false),
  });
}

const countedPages = 10;
const countedPage = 200;

/** How many notifications match, up to a bound: `more` says that there are others. */
export function notificationCount(filter: NotificationFilter) {
  return queryOptions({
    queryKey: [...notificationKeys.all, "count", filter],
    staleTime: 0,
    queryFn: async ({ signal }) => {
      let count = 0;
      let cursor = "";
      for (let at = 0; at < countedPages; at++) {
        const answer = await page(filter, cursor, countedPage, signal);
        count += answer.items.length;
        cursor = answer.nextCursor ?? "";
        if (!cursor) return { count, more: false };
      }
      return { count, more: true };
    },
  });
}

/** Whether any notification matches. */
export function notificationAny(filter: NotificationFilter) {
  return queryOptions({
    queryKey: [...notificationKeys.all, "any", filter],
    queryFn: async ({ signal }) => (await page(filter, "", 1, signal)).items.length > 0,
    refetchInterval: idlePollMs,
  });
}

export type Retriable = "FAILED" | "EXHAUSTED" | "RETRYING";

/** Makes a message due at once, delivered or not. */
export function retryNotification(id: string): Promise<Notification> {
  return body(client.POST("/notifications/{id}/retry", { params: { path: { id } } }));
}

/** Ends a message that waits. */
export function discardNotification(id: string): Promise<Notification> {
  return body(client.POST("/notifications/{id}/discard", { params: { path: { id } } }));
}

/** Makes all matching messages due at once that were not delivered. */
export function retryNotifications(filter: NotificationFilter, status: readonly Retriable[]) {
  const { webhookId, ruleId, alertId } = filter;
  const matching = {
    status: [...status],
    ...(webhookId.length > 0 ? { webhookId: [...webhookId] } : {}),
    ...(ruleId.length > 0 ? { ruleId: [...ruleId] } : {}),
    ...(alertId.length > 0 ? { alertId: [...alertId] } : {}),
    ...since(filter),
  };
  return body(client.POST("/notifications/retry", { body: { filter: matching } }));
}

/** After a retry, everything about deliveries is refreshed: here, and in the inbox. */
export async function refreshDeliveries(cache: QueryClient): Promise<void> {
  await Promise.all([
    cache.invalidateQueries({ queryKey: notificationKeys.all }),
    cache.invalidateQueries({ queryKey: alertKeys.timelines }),
    ...[alertKeys.lists, alertKeys.groups, alertKeys.nested].map((queryKey) => cache.invalidateQueries({ queryKey })),
  ]);
}
