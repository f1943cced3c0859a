import { useMutation, useQueryClient } from "@tanstack/react-query";
import { alertKeys, changeAlerts, markRead } from "../api/alerts";
import type { Alert, AlertSelection, BulkResult } from "../api/client";
import { isPassing, reasonOf } from "../api/errors";
import { randomId } from "../api/uuid";
import { type Tone, useToast } from "../ui/toast";
import { alertsWord, sum } from "../ui/words";
import { type Action, verbs } from "./actions";
import { patchAlert } from "./patch";
import { useOfferUndo } from "./undo";

export interface Bulk {
  to: Action["to"];
  parts: readonly AlertSelection[];
  /** The results of the parts that are done, in their order. */
  done: BulkResult[];
}

const changedBy = (done: readonly BulkResult[]) => sum(done.map(({ changed }) => changed));

/**
 * Acknowledges or resolves many alerts, and offers to undo it for as long as the API does. Each part has a name of its
 * own, so that one whose answer was lost is sent again without doing anything twice. Where a part fails, those before it
 * stand, and can be undone.
 */
export function useBulkAction(onDone: () => void) {
  const offerUndo = useOfferUndo();
  const cache = useQueryClient();
  const toast = useToast();
  const tell = (text: string, done: readonly BulkResult[], tone: Tone) => {
    const undoable = done.filter((result) => result.changed > 0);
    const until = undoable.map(({ undoableUntil }) => undoableUntil).sort()[0];
    if (until === undefined) return toast(text, tone);
    return offerUndo(text, { actions: undoable.map(({ actionId }) => actionId), until }, { tone });
  };
  const bulk = useMutation({
    // A further try goes on where the one before it failed.
    mutationFn: async ({ to, parts, done }: Bulk) => {
      for (const part of parts.slice(done.length)) done.push(await changeAlerts(to, part));
    },
    retry: (count, error) => count < 2 && isPassing(error),
    onSuccess: (_, { to, done }) => {
      onDone();
      const left = sum(done.map(({ already, refused, unknown }) => already + refused + unknown));
      const rest = left > 0 ? ` ${alertsWord(left)} not changed.` : "";
      tell(`${alertsWord(changedBy(done))} ${verbs[to]}.${rest}`, done, "done");
    },
    onError: (error, { to, done }) => {
      const changed = changedBy(done);
      const far = changed > 0 ? `${alertsWord(changed)} ${verbs[to]}, but not the rest.` : `Not ${verbs[to]}.`;
      tell(`${far} ${reasonOf(error)}`, done, "failed");
    },
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
  return {
    isPending: bulk.isPending,
    run: (to: Action["to"], parts: readonly AlertSelection[]) =>
      bulk.mutate({ to, parts: parts.map((part) => ({ ...part, actionId: randomId() })), done: [] }),
  };
}

/** Marks alerts as read or unread, for the reader alone: a mark that could not be stored is no reason to disturb. */
export function useReading() {
  const cache = useQueryClient();
  const one = useMutation({
    mutationFn: ({ alert, unread }: { alert: Alert; unread: boolean }) => markRead({ ids: [alert.id] }, unread),
    onMutate: ({ alert, unread }) => patchAlert(cache, alert.id, (old) => ({ ...old, unread })),
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.groups }),
  });
  const toast = useToast();
  const many = useMutation({
    mutationFn: async (parts: readonly AlertSelection[]) => {
      for (const part of parts) await markRead(part);
    },
    onError: (error) => toast(`Not marked as read. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
  return { mark: one.mutate, markMany: many.mutate };
}
