import { useQuery } from "@tanstack/react-query";
import { facets } from "../api/exchanges";
import type { Values } from "./values";

/** The keys of attributes that occur in the last day within a scope. */
export function useAttributeKeys({ environments, applications }: Values["scope"], wanted: boolean): string[] {
  const { data } = useQuery({ ...facets("attribute", "", { environments, applications }), enabled: wanted });
  return (data ?? []).map(({ value }) => value).filter((value) => value !== "");
}
