import { queryOptions } from "@tanstack/react-query";
import { body, client, type Webhook, type WebhookDefinition } from "./client";
import { allPages } from "./pages";

export const webhookKeys = { all: ["webhooks"] as const };

/** Every webhook by name. */
export function webhookList() {
  return queryOptions({
    queryKey: webhookKeys.all,
    queryFn: ({ signal }) =>
      allPages<Webhook>((cursor) =>
        body(client.GET("/webhooks", { signal, params: { query: { limit: 200, ...cursor } } })),
      ),
  });
}

export function createWebhook(definition: WebhookDefinition): Promise<Webhook> {
  return body(client.POST("/webhooks", { body: definition }));
}

export async function deleteWebhook(id: string): Promise<void> {
  await body(client.DELETE("/webhooks/{id}", { params: { path: { id } } }));
}
