import { queryOptions } from "@tanstack/react-query";
import {
  body,
  client,
  type RoutingPolicy,
  type RoutingPolicyDefinition,
  type RoutingTestAnswer,
  type RoutingTestRequest,
} from "./client";

export const routingKeys = { policy: ["routing"] as const };

/** The tenant's routing policy. There is always one. */
export function routingPolicy() {
  return queryOptions({
    queryKey: routingKeys.policy,
    queryFn: ({ signal }): Promise<RoutingPolicy> => body(client.GET("/routing", { signal })),
  });
}

/** Replaces the version of the policy that was edited; if there is another version, the answer is 412. */
export function updateRoutingPolicy(version: number, definition: RoutingPolicyDefinition): Promise<RoutingPolicy> {
  return body(client.PUT("/routing", { params: { header: { "If-Match": `"${version}"` } }, body: definition }));
}

/** Who would be notified, and why. */
export function routingTest(request: RoutingTestRequest) {
  return queryOptions({
    queryKey: ["routingTest", request] as const,
    queryFn: ({ signal }): Promise<RoutingTestAnswer> => body(client.POST("/routing/test", { signal, body: request })),
    retry: false,
  });
}
