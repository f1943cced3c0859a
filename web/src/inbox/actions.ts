import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { alertKeys, changeAlerts } from "../api/alerts";
import type { Alert, AlertCounts, AlertState } from "../api/client";
import { isPassing, reasonOf } from "../api/errors";
import { randomId } from "../api/uuid";
import { useToast } from "../ui/toast";
import { countedAs } from "./filter";
import { nameOf } from "./headline";
import { patchAlert, restoreAlert } from "./patch";
import { useUndo } from "./undo";

export interface Action {
  alert: Alert;
  to: "ACKNOWLEDGED" | "RESOLVED";
  /** For an alert of a window rule: until when nothing is raised for its group. */
  holdUntil?: string;
}

export const verbs = { ACKNOWLEDGED: "acknowledged", RESOLVED: "resolved" } as const;

/** How long a message about one alert is shown. The API can undo for longer. */
const offeredMs = 10_000;

/**
 * Acknowledges or resolves an alert, and offers to undo it. The page shows the new state at once.
 * If the server does not agree, the alert returns to its previous state, and the reader sees why.
 */
export function useAlertAction() {
  const undo = useUndo();
  const cache = useQueryClient();
  const toast = useToast();
  const action = useMutation({
    mutationKey: alertKeys.all,
    // With its id, an action whose answer was lost can be sent again and is done once.
    mutationFn: ({ alert, to, actionId, holdUntil }: Action & { actionId: string }) =>
      changeAlerts(to, { ids: [alert.id], actionId, ...(holdUntil ? { holdUntil } : {}) }),
    retry: (count, error) => count < 2 && isPassing(error),
    onMutate: async ({ alert, to }) => {
      const place = undo.take();
      // An answer under way shows the state before the action.
      await cache.cancelQueries({ queryKey: alertKeys.all });
      const before = cache.getQueriesData({ queryKey: alertKeys.all });
      foresee(cache, alert, to, new Date().toISOString());
      return { before, place };
    },
    onError: (error, { alert, to }, context) => {
      if (context) {
        restoreAlert(cache, alert, context.before);
        cache.setQueryData<AlertCounts>(alertKeys.counts, (old) => old && recount(old, to, alert.state));
      }
      toast(`“${alert.title}” was not ${verbs[to]}. ${reasonOf(error)}`, "failed");
    },
    onSuccess: ({ actionId, changed, already, undoableUntil }, { alert, to }, { place }) => {
      const undoable = { actions: [actionId], until: undoableUntil };
      if (changed > 0) undo.offer(`${nameOf(alert)} ${verbs[to]}.`, undoable, { place, forMs: offeredMs });
      else if (already > 0) toast(`${nameOf(alert)} was already ${verbs[to]}.`, "done");
      else toast(`${nameOf(alert)} was not ${verbs[to]}: it has changed in the meantime.`, "failed");
    },
    onSettled: async () => {
      // The last of several actions reads the state of all of them.
      if (cache.isMutating({ mutationKey: alertKeys.all }) > 1) return;
      await cache.invalidateQueries({ queryKey: alertKeys.all });
    },
  });
  return { mutate: (asked: Action) => action.mutate({ ...asked, actionId: randomId() }) };
}

function foresee(cache: QueryClient, alert: Alert, to: Action["to"], at: string): void {
  cache.setQueryData<AlertCounts>(alertKeys.counts, (old) => old && recount(old, alert.state, to));
  cache.setQueryData<Alert>(alertKeys.one(alert.id), (old) => old ?? alert);
  patchAlert(cache, alert.id, (old) => become(old, to, at));
}

/** The alert as it will be after the action. Only the server knows who did it. */
export function become({ reopenable: _, ...alert }: Alert, to: Action["to"], at: string): Alert {
  return to === "ACKNOWLEDGED" ? { ...alert, state: to, acknowledgedAt: at } : { ...alert, state: to, resolvedAt: at };
}

export function recount(counts: AlertCounts, from: AlertState, to: AlertState): AlertCounts {
  const next = { ...counts };
  next[countedAs[from]] = Math.max(0, next[countedAs[from]] - 1);
  next[countedAs[to]] += 1;
  return next;
}
