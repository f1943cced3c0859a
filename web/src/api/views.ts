import { queryOptions } from "@tanstack/react-query";
import { body, client, type ViewDefinition } from "./client";

export const viewKeys = { all: ["views"] as const };

/** The reader's saved views and the shared ones, by name. */
export function savedViews() {
  return queryOptions({
    queryKey: viewKeys.all,
    queryFn: async ({ signal }) => (await body(client.GET("/views", { signal }))).items,
  });
}

/** A view of the reader with the same name is replaced. */
export const saveView = (view: ViewDefinition) => body(client.POST("/views", { body: view }));

export const deleteView = (id: string) => body(client.DELETE("/views/{id}", { params: { path: { id } } }));
