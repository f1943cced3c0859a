import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import {
  body,
  client,
  type Silence,
  type SilenceDefinition,
  type SilencePreview,
  type SilencePreviewRequest,
} from "./client";

export const silenceKeys = {
  all: ["silences"] as const,
  one: (id: string) => ["silences", "one", id] as const,
};

const pollMs = 15_000;
const pastPage = 50;

/** The silences that are not over, newest first, polled: they begin and end as time passes. */
export function openSilences() {
  return queryOptions({
    queryKey: [...silenceKeys.all, "open"] as const,
    queryFn: async ({ signal }) => (await body(client.GET("/silences", { signal }))).items,
    refetchInterval: pollMs,
  });
}

/** The silences that are over, newest first. */
export function pastSilences() {
  return infiniteQueryOptions({
    queryKey: [...silenceKeys.all, "past"] as const,
    queryFn: ({ signal, pageParam }) =>
      body(
        client.GET("/silences", {
          signal,
          params: { query: { past: true, limit: pastPage, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.nextCursor,
  });
}

export function oneSilence(id: string) {
  return queryOptions({ queryKey: silenceKeys.one(id), queryFn: ({ signal }) => readSilence(id, signal) });
}

export function readSilence(id: string, signal?: AbortSignal): Promise<Silence> {
  return body(client.GET("/silences/{id}", { ...(signal ? { signal } : {}), params: { path: { id } } }));
}

export function createSilence(definition: SilenceDefinition): Promise<Silence> {
  return body(client.POST("/silences", { body: definition }));
}

/** Replaces the version of the definition that was edited; if there is another version, the answer is 412. */
export function updateSilence(
  { id, version }: Pick<Silence, "id" | "version">,
  definition: SilenceDefinition,
): Promise<Silence> {
  const params = { path: { id }, header: { "If-Match": `"${version}"` } };
  return body(client.PUT("/silences/{id}", { params, body: definition }));
}

export function endSilence(id: string): Promise<Silence> {
  return body(client.POST("/silences/{id}/end", { params: { path: { id } } }));
}

/** What a silence would have suppressed in the last 24 hours. */
export function silencePreview(request: SilencePreviewRequest) {
  return queryOptions({
    queryKey: ["silencePreview", request] as const,
    queryFn: ({ signal }): Promise<SilencePreview> => body(client.POST("/silences/preview", { signal, body: request })),
    retry: false,
  });
}
