import { queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";

const pollMs = 15_000;

/** How many alerts each minute of the last hour has raised. */
export function alertActivity() {
  return queryOptions({
    queryKey: ["activity"] as const,
    queryFn: ({ signal }) => body(client.GET("/alerts/activity", { signal })),
    refetchInterval: pollMs,
    retry: false,
  });
}
