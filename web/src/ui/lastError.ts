import { useState } from "react";

interface Query {
  data: unknown;
  error: Error | null;
}

/**
 * Why nothing is known of a query; null as long as something is, or nothing went wrong yet. Unlike the query's own error it
 * stays through the tries that follow, so that it can be read where events or polls have it asked again. It is over when an
 * answer comes, or when something else is asked (`key`).
 */
export function useLastError({ data, error }: Query, key = ""): Error | null {
  const [last, setLast] = useState<{ key: string; error: Error | null }>({ key, error: null });
  const before = last.key === key ? last.error : null;
  const current = data === undefined ? (error ?? before) : null;
  if (current !== last.error || key !== last.key) setLast({ key, error: current });
  return current;
}
