import { useState } from "react";

/**
 * Why nothing is known of a query; null as long as something is, or nothing went wrong yet. Unlike the query's own error it
 * stands through the tries that follow, so that a page which polls does not change with each of them.
 */
export function useStanding({ data, error }: { data: unknown; error: Error | null }): Error | null {
  const [last, setLast] = useState<Error | null>(null);
  const stands = data === undefined ? (error ?? last) : null;
  if (stands !== last) setLast(stands);
  return stands;
}
