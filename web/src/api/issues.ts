import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { alertKeys } from "./alerts";
import { body, client } from "./client";

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
  return infiniteQueryOptions({
    queryKey: [...alertKeys.issues, { application, route, signature }, "alerts"] as const,
    queryFn: ({ signal, pageParam }) =>
      body(
        client.GET("/alerts", {
          signal,
          params: {
            query: {
              application: [application],
              route: [route],
              signature: [signature],
              perExchange: true,
              limit: pageSize,
              ...(pageParam ? { cursor: pageParam } : {}),
            },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
  });
}
