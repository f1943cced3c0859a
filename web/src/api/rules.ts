import { queryOptions } from "@tanstack/react-query";
import { body, client, type Reconciliation, type Rule, type RuleDefinition } from "./client";
import { allPages } from "./pages";

export const ruleKeys = { all: ["rules"] as const };

const healthPollMs = 5_000;

/** Every rule by name, with its health, which changes by itself. */
export function ruleList() {
  return queryOptions({
    queryKey: ruleKeys.all,
    queryFn: ({ signal }) =>
      allPages<Rule>((cursor) => body(client.GET("/rules", { signal, params: { query: { limit: 200, ...cursor } } }))),
    refetchInterval: healthPollMs,
  });
}

export function createRule(definition: RuleDefinition): Promise<Rule> {
  return body(client.POST("/rules", { body: definition }));
}

export async function deleteRule(id: string): Promise<void> {
  await body(client.DELETE("/rules/{id}", { params: { path: { id } } }));
}

export function setRuleEnabled(id: string, enabled: boolean): Promise<Rule> {
  const params = { path: { id } };
  return body(enabled ? client.POST("/rules/{id}/enable", { params }) : client.POST("/rules/{id}/disable", { params }));
}

/** Has a rule that could not be evaluated evaluated at once. */
export function retryRule(id: string): Promise<Rule> {
  return body(client.POST("/rules/{id}/retry", { params: { path: { id } } }));
}

/** Compares a rule's alerts with the exchanges that match, which may take a while. */
export function reconcileRule(id: string): Promise<Reconciliation> {
  return body(client.POST("/rules/{id}/reconcile", { params: { path: { id } } }));
}
