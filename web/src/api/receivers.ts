import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { body, client, type ReceiverPreview } from "./client";

/** The receivers that a webhook can be for, by name. */
export function receiverList() {
  return queryOptions({
    queryKey: ["receivers"] as const,
    queryFn: async ({ signal }) => (await body(client.GET("/receivers", { signal }))).items,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The requests that a receiver would get. They need no secret, so none is sent. */
export function receiverPreview(receiver: string, inputs: Record<string, string>) {
  return queryOptions({
    queryKey: ["receiverPreview", receiver, inputs] as const,
    queryFn: ({ signal }): Promise<ReceiverPreview> =>
      body(client.POST("/receivers/{receiver}/preview", { signal, params: { path: { receiver } }, body: { inputs } })),
    placeholderData: keepPreviousData,
    retry: false,
  });
}
