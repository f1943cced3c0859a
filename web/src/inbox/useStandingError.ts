import { useState } from "react";

interface Query {
  data: unknown;
  error: Error | null;
}

/**
 * Why there is nothing to show yet: the newest error, also while the same is asked again. The stream of events has it asked
 * again each second, and an error that went away each time could not be read. It is over when an answer comes, when
 * something else is asked (`key`), or by `forget`, for a reader who wants to see that something is tried.
 */
export function useStandingError({ data, error }: Query, key: string) {
  const [last, setLast] = useState<{ key: string; error: Error }>();
  if (error !== null && error !== last?.error) setLast({ key, error });
  return {
    error: data === undefined && last?.key === key ? last.error : undefined,
    forget: () => setLast(undefined),
  };
}
