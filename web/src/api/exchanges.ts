import { queryOptions } from "@tanstack/react-query";
import { body, client, type RuleDefinition } from "./client";

export type FacetField = "environment" | "application" | "route" | "errorType" | "attribute";
type Scope = NonNullable<RuleDefinition["scope"]>;

const facetLimit = 50;

/** The values of a field that begin with a text, most frequent first, within environments and applications. */
export function facets(field: FacetField, prefix: string, { environments = [], applications = [] }: Scope) {
  return queryOptions({
    queryKey: ["facets", field, prefix, environments, applications] as const,
    queryFn: async ({ signal }) => {
      const query = { field, limit: facetLimit, ...(prefix ? { prefix } : {}) };
      const within = { environment: environments, application: applications };
      return (await body(client.GET("/exchanges/facets", { signal, params: { query: { ...query, ...within } } })))
        .items;
    },
    staleTime: 60_000,
    retry: false,
  });
}

export interface ExplainQuery {
  executionId: string;
  startTime?: string;
  hours?: number;
}

/** Why there is an alert about an exchange, or why not, rule by rule. */
export function explanation({ executionId, startTime, hours }: ExplainQuery) {
  const query = { executionId, ...(startTime ? { startTime } : {}), ...(hours ? { hours } : {}) };
  return queryOptions({
    queryKey: ["explanation", query] as const,
    queryFn: ({ signal }) => body(client.GET("/exchanges/explain", { signal, params: { query } })),
    retry: false,
  });
}

const recentLimit = 20;

/** The newest exchanges of a scope with a result. */
export function recentExchanges(scope: Scope, statuses: ("COMPLETED" | "FAILED")[]) {
  const { environments = [], applications = [], routes = [] } = scope;
  const query = { environment: environments, application: applications, route: routes, status: statuses };
  return queryOptions({
    queryKey: ["recentExchanges", query] as const,
    queryFn: async ({ signal }) =>
      (await body(client.GET("/exchanges", { signal, params: { query: { ...query, limit: recentLimit } } }))).items,
    staleTime: 60_000,
    retry: false,
  });
}
