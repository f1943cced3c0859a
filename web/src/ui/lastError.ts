import { useState } from "react";

interface Query {
  data: unknown;
  error: Error | null;
}

/**
 * Why a query has no data; null if it has data, or no error yet. Unlike the query's own error it
 * stays during the following tries, so that it can be read even if events or polls repeat the
 * query. It is removed when an answer arrives, or when the query (`key`) changes.
 */
export function useLastError({ data, error }: Query, key = ""): Error | null {
  const [last, setLast] = useState<{ key: string; error: Error | null }>({ key, error: null });
  const before = last.key === key ? last.error : null;
  const current = data === undefined ? (error ?? before) : null;
  if (current !== last.error || key !== last.key) setLast({ key, error: current });
  return current;
}
