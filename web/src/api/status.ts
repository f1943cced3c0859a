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
