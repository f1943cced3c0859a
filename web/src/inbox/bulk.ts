import { useMutation, useQueryClient } from "@tanstack/react-query";
import { alertKeys, assignAlerts, changeAlerts, type Handover, markRead } from "../api/alerts";
import type { Alert, AlertSelection, BulkResult } from "../api/client";
import { isPassing, reasonOf } from "../api/errors";
import { randomId } from "../api/uuid";
import { type Tone, useToast } from "../ui/toast";
import { alertsWord, sum } from "../ui/words";
import { type Action, verbs } from "./actions";
import { patchAlert } from "./patch";
import { useUndo } from "./undo";

/** An action on many alerts: a new state, or another assignee. */
type Change = Action["to"] | Handover;

export interface Bulk {
  to: Change;
  parts: readonly AlertSelection[];
  /** The results of the completed parts, in order. */
  done: BulkResult[];
}

const verb = (to: Change) => {
  if (typeof to === "string") return verbs[to];
  return to.assignee === "" ? "unassigned" : `assigned to ${to.assignee}`;
};

/** Why some alerts stay as they are. */
function leftWords(to: Change, done: readonly BulkResult[]): string {
  const left = sum(done.map(({ already, refused, unknown }) => already + refused + unknown));
  if (left === 0) return "";
  const others = typeof to !== "string" && !to.reassign && done.some(({ refused }) => refused > 0);
  return ` ${alertsWord(left)} not changed${others ? ": others are handling them, or they are resolved" : ""}.`;
}

const changedBy = (done: readonly BulkResult[]) => sum(done.map(({ changed }) => changed));

/**
 * Acknowledges, resolves or assigns many alerts, and offers to undo it for as long as the API does.
 * Each part has its own id, so that a part whose answer was lost can be sent again without doing
 * anything twice. If a part fails, the parts before it remain done, and can be undone.
 */
export function useBulkAction(onDone: () => void) {
  const undo = useUndo();
  const cache = useQueryClient();
  const toast = useToast();
  const tell = (text: string, done: readonly BulkResult[], tone: Tone, place = 0) => {
    const undoable = done.filter((result) => result.changed > 0);
    const until = undoable.map(({ undoableUntil }) => undoableUntil).sort()[0];
    if (until === undefined) return toast(text, tone);
    return undo.offer(text, { actions: undoable.map(({ actionId }) => actionId), until }, { place, tone });
  };
  const bulk = useMutation({
    onMutate: () => ({ place: undo.take() }),
    // Another try continues where the previous one failed.
    mutationFn: async ({ to, parts, done }: Bulk) => {
      for (const part of parts.slice(done.length)) {
        done.push(await (typeof to === "string" ? changeAlerts(to, part) : assignAlerts(to, part)));
      }
    },
    retry: (count, error) => count < 2 && isPassing(error),
    onSuccess: (_, { to, done }, { place }) => {
      onDone();
      tell(`${alertsWord(changedBy(done))} ${verb(to)}.${leftWords(to, done)}`, done, "done", place);
    },
    onError: (error, { to, done }, context) => {
      const changed = changedBy(done);
      const far = changed > 0 ? `${alertsWord(changed)} ${verb(to)}, but not the rest.` : `Not ${verb(to)}.`;
      tell(`${far} ${reasonOf(error)}`, done, "failed", context?.place);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
  return {
    isPending: bulk.isPending,
    run: (to: Change, parts: readonly AlertSelection[]) =>
      bulk.mutate({ to, parts: parts.map((part) => ({ ...part, actionId: randomId() })), done: [] }),
  };
}

/** Marks alerts as read or unread, only for the reader. If that fails, the reader is not disturbed. */
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
