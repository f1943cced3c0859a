import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { acknowledge, alertKeys, resolve } from "../api/alerts";
import type { Alert, AlertCounts, AlertState } from "../api/client";
import { explain } from "../api/errors";
import { useToast } from "../ui/toast";
import { countedAs } from "./filter";
import { patchAlert } from "./patch";

export interface Action {
  alert: Alert;
  to: "ACKNOWLEDGED" | "RESOLVED";
}

const verbs = { ACKNOWLEDGED: "acknowledged", RESOLVED: "resolved" } as const;

/**
 * Acknowledges or resolves an alert. The page shows the new state at once; if the server does not agree, everything
 * returns to what it was, and the reader is told why.
 */
export function useAlertAction() {
  const cache = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationKey: alertKeys.all,
    mutationFn: ({ alert, to }: Action) => (to === "ACKNOWLEDGED" ? acknowledge(alert.id) : resolve(alert.id)),
    onMutate: async ({ alert, to }) => {
      // An answer on its way tells of the time before.
      await cache.cancelQueries({ queryKey: alertKeys.all });
      const before = cache.getQueriesData({ queryKey: alertKeys.all });
      foresee(cache, alert, to, new Date().toISOString());
      return { before };
    },
    onError: (error, { alert, to }, context) => {
      for (const [key, data] of context?.before ?? []) cache.setQueryData(key, data);
      toast(`“${alert.title}” was not ${verbs[to]}. ${explain(error).what}`, "failed");
    },
    onSuccess: (answer) => {
      cache.setQueryData<Alert>(alertKeys.one(answer.id), (old) => {
        if (!old?.exchange || !answer.exchange) return answer;
        return { ...old, ...answer, exchange: { ...old.exchange, ...answer.exchange } };
      });
    },
    onSettled: async () => {
      // The last of several actions asks for the truth about all.
      if (cache.isMutating({ mutationKey: alertKeys.all }) > 1) return;
      await cache.invalidateQueries({ queryKey: alertKeys.all });
    },
  });
}

function foresee(cache: QueryClient, alert: Alert, to: Action["to"], at: string): void {
  cache.setQueryData<AlertCounts>(alertKeys.counts, (old) => old && recount(old, alert.state, to));
  cache.setQueryData<Alert>(alertKeys.one(alert.id), (old) => old ?? alert);
  patchAlert(cache, alert.id, (old) => become(old, to, at));
}

/** The alert as it will stand after the action; who did it, only the server knows. */
export function become(alert: Alert, to: Action["to"], at: string): Alert {
  return to === "ACKNOWLEDGED" ? { ...alert, state: to, acknowledgedAt: at } : { ...alert, state: to, resolvedAt: at };
}

export function recount(counts: AlertCounts, from: AlertState, to: AlertState): AlertCounts {
  const next = { ...counts };
  next[countedAs[from]] = Math.max(0, next[countedAs[from]] - 1);
  next[countedAs[to]] += 1;
  return next;
}
