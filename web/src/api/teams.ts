import { queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";
import type { components } from "./schema.gen";

type Schemas = components["schemas"];
export type Team = Schemas["Team"];
export type TeamList = Schemas["TeamList"];

export const teamKeys = { all: ["teams"] as const };

/** The tenant's teams. There is always a list. */
export function teamList() {
  return queryOptions({
    queryKey: teamKeys.all,
    queryFn: ({ signal }): Promise<TeamList> => body(client.GET("/teams", { signal })),
  });
}

/** The names of teams, for suggestions. */
export const teamNames = () =>
  queryOptions({ ...teamList(), select: ({ teams }) => teams.map(({ name }) => name).sort() });

/** Replaces the version of the teams that was edited; if there is another version, the answer is 412. */
export function updateTeams(version: number, teams: readonly Team[]): Promise<TeamList> {
  return body(
    client.PUT("/teams", { params: { header: { "If-Match": `"${version}"` } }, body: { teams: [...teams] } }),
  );
}
