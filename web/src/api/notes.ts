import { infiniteQueryOptions } from "@tanstack/react-query";
import { body, client } from "./client";
import type { IssueKey } from "./issues";

const pageSize = 20;

const pollMs = 15_000;

/** An issue with notes, or an alert with the notes on what it is about. */
export type Noted = IssueKey | { alertId: string };

/** The notes, newest first. No event announces notes, and a storm of alerts writes none. */
export function notesOf(of: Noted) {
  return infiniteQueryOptions({
    queryKey: ["notes", "alertId" in of ? { alertId: of.alertId } : issueOf(of)] as const,
    queryFn: ({ signal, pageParam }) => {
      const page = { limit: pageSize, ...(pageParam ? { cursor: pageParam } : {}) };
      return "alertId" in of
        ? body(client.GET("/alerts/{id}/notes", { signal, params: { path: { id: of.alertId }, query: page } }))
        : body(client.GET("/alerts/issue/notes", { signal, params: { query: { ...issueOf(of), ...page } } }));
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
    refetchInterval: pollMs,
  });
}

/** With its id, a note whose answer was lost can be sent again and is written once. */
export const writeNote = (of: Noted, note: { noteId: string; text: string }) =>
  "alertId" in of
    ? body(client.POST("/alerts/{id}/notes", { params: { path: { id: of.alertId } }, body: note }))
    : body(client.POST("/alerts/issue/notes", { body: { ...issueOf(of), ...note } }));

export const deleteNote = (id: string) => body(client.DELETE("/alerts/issue/notes/{id}", { params: { path: { id } } }));

function issueOf({ application, route, signature }: IssueKey): IssueKey {
  return { application, route, signature };
}
