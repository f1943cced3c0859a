import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { isAway } from "../api/errors";

/**
 * After a try that failed because Tocsin did not answer, calls back once Tocsin answers again: then
 * the shown error is not true any more.
 */
export function useUntilBack(failed: unknown, call: () => void): void {
  const cache = useQueryClient();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the call is another each time, and does the same.
  useEffect(() => {
    if (!isAway(failed)) return;
    return cache.getQueryCache().subscribe(({ type, ...event }) => {
      if (type === "updated" && "action" in event && event.action.type === "success" && !event.action.manual) call();
    });
  }, [cache, failed]);
}
