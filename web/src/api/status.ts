import { queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";

const pollMs = 3_000;

/** How Tocsin itself is doing. */
export function systemStatus() {
  return queryOptions({
    queryKey: ["status"],
    queryFn: ({ signal }) => body(client.GET("/status", { signal })),
    refetchInterval: pollMs,
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
