import { queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";

const aWeek = 7 * 24;

/** The most frequent applications of exchanges within a week. */
export function applicationNames() {
  return queryOptions({
    queryKey: ["facets", "application"],
    staleTime: 300_000,
    queryFn: async ({ signal }) => {
      const query = { field: "application" as const, hours: aWeek, limit: 200 };
      const { items } = await body(client.GET("/exchanges/facets", { signal, params: { query } }));
      return items.map(({ value }) => value);
    },
  });
}
