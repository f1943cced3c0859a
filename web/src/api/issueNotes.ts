import { infiniteQueryOptions } from "@tanstack/react-query";
import { body, client } from "./client";
import type { IssueKey } from "./issues";

const pageSize = 20;

const pollMs = 15_000;

/** What people wrote about an issue, newest first. No event tells of a note, and a storm of alerts writes none. */
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

/** By its id, a note whose answer was lost is sent again and written once. */
export const writeNote = ({ application, route, signature }: IssueKey, note: { noteId: string; text: string }) =>
  body(client.POST("/alerts/issue/notes", { body: { application, route, signature, ...note } }));

export const deleteNote = (id: string) => body(client.DELETE("/alerts/issue/notes/{id}", { params: { path: { id } } }));
