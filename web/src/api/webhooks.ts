import { queryOptions } from "@tanstack/react-query";
import {
  body,
  client,
  type RotatedSecret,
  type TestResult,
  type Webhook,
  type WebhookDefinition,
  type WebhookEdit,
} from "./client";
import { allPages } from "./pages";

export const webhookKeys = {
  all: ["webhooks"] as const,
  one: (id: string) => ["webhooks", "one", id] as const,
};

const healthPollMs = 5_000;

/** Every webhook by name. */
export function webhookList() {
  return queryOptions({
    queryKey: [...webhookKeys.all, "list"] as const,
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

/** The list, polled: whether messages flow to a webhook changes by itself. */
export function webhookHealth() {
  return { ...webhookList(), refetchInterval: healthPollMs };
}

export function oneWebhook(id: string) {
  return queryOptions({ queryKey: webhookKeys.one(id), queryFn: ({ signal }) => readWebhook(id, signal) });
}

/** The webhook, polled like the list. */
export function oneWebhookHealth(id: string) {
  return { ...oneWebhook(id), refetchInterval: healthPollMs };
}

export function readWebhook(id: string, signal?: AbortSignal): Promise<Webhook> {
  return body(client.GET("/webhooks/{id}", { ...(signal ? { signal } : {}), params: { path: { id } } }));
}

/** Replaces the version of the definition that was edited; if there is another version, the answer is 412. */
export function updateWebhook({ id, version }: Pick<Webhook, "id" | "version">, edit: WebhookEdit): Promise<Webhook> {
  const params = { path: { id }, header: { "If-Match": `"${version}"` } };
  return body(client.PUT("/webhooks/{id}", { params, body: edit }));
}

export function setWebhookEnabled(id: string, enabled: boolean): Promise<Webhook> {
  const params = { path: { id } };
  return body(
    enabled ? client.POST("/webhooks/{id}/enable", { params }) : client.POST("/webhooks/{id}/disable", { params }),
  );
}

/** Sends one message about a made-up exchange. */
export function testWebhook(id: string): Promise<TestResult> {
  return body(client.POST("/webhooks/{id}/test", { params: { path: { id } } }));
}

/** Makes a new signing secret; the previous one also signs for a while. */
export function rotateSecret(id: string, overlapSeconds: number): Promise<RotatedSecret> {
  return body(client.POST("/webhooks/{id}/rotate-secret", { params: { path: { id } }, body: { overlapSeconds } }));
}

/** From now on, only the present secret signs. */
export function retireSecret(id: string): Promise<Webhook> {
  return body(client.POST("/webhooks/{id}/retire-secret", { params: { path: { id } } }));
}

/** How deliveries to a webhook went in the last 24 hours. */
export function webhookActivity(id: string) {
  return queryOptions({
    queryKey: ["webhookActivity", id] as const,
    queryFn: ({ signal }) => body(client.GET("/webhooks/{id}/activity", { signal, params: { path: { id } } })),
    refetchInterval: activityPollMs,
    retry: false,
  });
}

const activityPollMs = 30_000;
