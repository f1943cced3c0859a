import { queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";

const pollMs = 3_000;

/** How long an answer about Tocsin may take, which is ready at once unless Tocsin hangs. */
const answersWithinMs = 10_000;

/** How Tocsin itself is doing. What does not say so in time does not answer, even though the call has not failed. */
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

/** The version that answered first since the page was loaded. */
export const firstVersionKey = ["firstVersion"] as const;

const historyPollMs = 60_000;

/** How the system was in the last 24 hours, as the server keeps it. */
export function systemHistory() {
  return queryOptions({
    queryKey: ["statusHistory"],
    queryFn: ({ signal }) => body(client.GET("/status/history", { signal })),
    refetchInterval: historyPollMs,
    retry: false,
  });
}

/** The processes that run, and those that died lately. */
export function replicaList() {
  return queryOptions({
    queryKey: ["replicas"],
    queryFn: async ({ signal }) => (await body(client.GET("/replicas", { signal }))).items,
    refetchInterval: pollMs,
  });
}
