import { useMutation, useQueryClient } from "@tanstack/react-query";
import { alertKeys, undoAction } from "../api/alerts";
import type { Alert } from "../api/client";
import { isPassing, reasonOf } from "../api/errors";
import { serverNow } from "../api/status";
import { useAtNow } from "../ui/now";
import { useToast } from "../ui/toast";
import { alertsWord } from "../ui/words";
import { nameOf } from "./headline";
import { useUndo } from "./undo";

/** Whether the reader can reopen an alert now: the API undoes an action for some minutes only. */
export function useReopenable(alert: Alert | undefined): boolean {
  const cache = useQueryClient();
  const until = Date.parse(alert?.reopenable?.until ?? "");
  return useAtNow((now) => until > serverNow(cache, now));
}

/** What is reopened: one alert, or all that were changed together. */
export function reopenWord({ reopenable }: Alert): string {
  const together = reopenable?.alerts ?? 1;
  return together > 1 ? `Reopen ${alertsWord(together)}` : "Reopen";
}

/** Reopens an alert that the reader has acknowledged or resolved, and all that they changed together with it. */
export function useReopen() {
  const cache = useQueryClient();
  const toast = useToast();
  const undo = useUndo();
  return useMutation({
    mutationKey: alertKeys.all,
    mutationFn: ({ reopenable }: Alert) => undoAction(reopenable?.actionId ?? ""),
    onMutate: () => ({ place: undo.take() }),
    retry: (count, error) => count < 2 && isPassing(error),
    onSuccess: ({ restored, skipped }, alert, { place }) => {
      undo.supersede(place);
      if (restored === 0) {
        toast(`${nameOf(alert)} was not reopened: it has changed, or another alert is open in its place.`, "failed");
        return;
      }
      const what = alert.reopenable?.alerts === 1 ? nameOf(alert) : alertsWord(restored);
      const rest = skipped > 0 ? ` ${alertsWord(skipped)} changed in the meantime and stay as they are.` : "";
      toast(`${what} reopened.${rest}`, "done");
    },
    onError: (error, alert) => toast(`${nameOf(alert)} was not reopened. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
}
