import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";

const pollMs = 3_000;

/** The timeout of a status request, whose answer is ready at once unless Tocsin hangs. */
const answersWithinMs = 10_000;

/**
 * The state of Tocsin itself. If there is no answer in time, Tocsin counts as not answering, even
 * if the call has not failed.
 */
export function systemStatus() {
  return queryOptions({
    queryKey: ["status"],
    queryFn: async ({ signal, client: cache }) => {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(answersWithinMs)]);
      const status = await body(client.GET("/status", { signal: bounded }));
      cache.setQueryData<string>(firstVersionKey, (first) => first ?? status.version);
      return status;
    },
    refetchInterval: pollMs,
    retry: false,
  });
}

/**
 * The server's time at a moment of this computer, whose clock may be wrong; both in milliseconds. Until the server has
 * reported its time, the two count as equal.
 */
export function serverNow(cache: QueryClient, now = Date.now()): number {
  const state = cache.getQueryState(systemStatus().queryKey);
  return state?.data ? now + Date.parse(state.data.now) - state.dataUpdatedAt : now;
}

/** The version in the first answer since the page was loaded. */
export const firstVersionKey = ["firstVersion"] as const;

const historyPollMs = 60_000;

/** The system in the last 24 hours, from the server's samples. */
export function systemHistory() {
  return queryOptions({
    queryKey: ["statusHistory"],
    queryFn: ({ signal }) => body(client.GET("/status/history", { signal })),
    refetchInterval: historyPollMs,
    retry: false,
  });
}

/** The running processes, and those that died recently. */
export function replicaList() {
  return queryOptions({
    queryKey: ["replicas"],
    queryFn: async ({ signal }) => (await body(client.GET("/replicas", { signal }))).items,
    refetchInterval: pollMs,
  });
}
