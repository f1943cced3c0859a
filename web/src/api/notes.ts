import { infiniteQueryOptions } from "@tanstack/react-query";
import { body, client } from "./client";
import type { IssueKey } from "./issues";

const pageSize = 20;

const pollMs = 15_000;

/** The notes on an issue, newest first. No event announces notes, and a storm of alerts writes none. */
export function issueNotes({ application, route, signature }: IssueKey) {
  const key = { application, route, signature };
  return infiniteQueryOptions({
    queryKey: ["issueNotes", key] as const,
    queryFn: ({ signal, pageParam }) =>
      body(
        client.GET("/alerts/issue/notes", {
          signal,
          params: { query: { ...key, limit: pageSize, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
    refetchInterval: pollMs,
  });
}

/** With its id, a note whose answer was lost can be sent again and is written once. */
export const writeNote = ({ application, route, signature }: IssueKey, note: { noteId: string; text: string }) =>
  body(client.POST("/alerts/issue/notes", { body: { application, route, signature, ...note } }));

export const deleteNote = (id: string) => body(client.DELETE("/alerts/issue/notes/{id}", { params: { path: { id } } }));
