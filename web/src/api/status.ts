import { queryOptions, skipToken } from "@tanstack/react-query";
import { body, client, type Status } from "./client";

const pollMs = 3_000;

/** How long an answer about Tocsin may take, which is ready at once unless Tocsin hangs. */
const patienceMs = 10_000;

/** How Tocsin itself is doing. What does not say so in time does not answer, even though the call has not failed. */
export function systemStatus() {
  return queryOptions({
    queryKey: ["status"],
    queryFn: async ({ signal, client: cache }) => {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
      const status = await body(client.GET("/status", { signal: bounded }));
      cache.setQueryData<string>(firstVersionKey, (first) => first ?? status.version);
      cache.setQueryData<readonly Moment[]>(pastKey, (past = []) => [...past, momentOf(status)].slice(-mostMoments));
      return status;
    },
    refetchInterval: pollMs,
    retry: false,
  });
}

/** The version that answered first since the page was loaded. */
export const firstVersionKey = ["firstVersion"] as const;

/** What is remembered of a status, to show where it is going. */
export interface Moment {
  at: string;
  owed: number | undefined;
  lagSeconds: number | undefined;
}

export const mostMoments = 100;
export const pastKey = ["statusPast"] as const;

const momentOf = ({ now, outbox, rules }: Status): Moment => ({
  at: now,
  owed: outbox?.depth,
  lagSeconds: rules?.slowestLagSeconds,
});

/** The latest moments that this page has seen, the oldest first. Nobody else remembers them. */
export function statusPast() {
  return queryOptions<readonly Moment[]>({ queryKey: pastKey, queryFn: skipToken, initialData: [] });
}

/** The processes that run, and those that died lately. */
export function replicaList() {
  return queryOptions({
    queryKey: ["replicas"],
    queryFn: async ({ signal }) => (await body(client.GET("/replicas", { signal }))).items,
    refetchInterval: pollMs,
  });
}
