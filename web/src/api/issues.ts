import { infiniteQueryOptions, type QueryKey, queryOptions } from "@tanstack/react-query";
import { alertKeys, mostChanged } from "./alerts";
import { type AlertPage, body, client } from "./client";

/** The identity of an issue. */
export interface IssueKey {
  application: string;
  route: string;
  /** Empty for alerts without an error. */
  signature: string;
}

const pageSize = 50;

/** An issue over all its alerts. */
export function oneIssue(key: IssueKey) {
  return queryOptions({
    queryKey: [...alertKeys.issues, key] as const,
    queryFn: ({ signal }) => body(client.GET("/alerts/issue", { signal, params: { query: key } })),
  });
}

/** The alerts of an issue in any state, newest first. */
export function issueAlerts({ application, route, signature }: IssueKey) {
  const key = { application, route, signature };
  return infiniteQueryOptions({
    queryKey: [...alertKeys.issues, key, "alerts"] as const,
    queryFn: ({ signal, pageParam }) => issueAlertPage(key, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
  });
}

/** Whether a key is one of {@link issueAlerts}. */
export function isAlertsOfIssue(key: QueryKey): boolean {
  return key[1] === alertKeys.issues[1] && key[3] === "alerts";
}

/** The key of the issue to which a key of {@link issueAlerts} belongs. */
export function issueOf(key: QueryKey): QueryKey {
  return key.slice(0, 3);
}

/** One page of the alerts of an issue; the first for an empty cursor. */
export function issueAlertPage(key: IssueKey, cursor: string, signal?: AbortSignal): Promise<AlertPage> {
  const query = { ...within(key), limit: pageSize, ...(cursor ? { cursor } : {}) };
  return body(client.GET("/alerts", { ...(signal ? { signal } : {}), params: { query } }));
}

/** Those of these alerts that belong to an issue. */
export function changedOfIssue(key: IssueKey, ids: readonly string[]): Promise<AlertPage> {
  return body(client.GET("/alerts", { params: { query: { ...within(key), id: [...ids], limit: mostChanged } } }));
}

function within({ application, route, signature }: IssueKey) {
  return { application: [application], route: [route], signature: [signature], perExchange: true };
}
