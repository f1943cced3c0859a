import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { alertKeys, changeAlerts, markRead, undoAction } from "../api/alerts";
import type { Alert, AlertSelection } from "../api/client";
import { isPassing, reasonOf } from "../api/errors";
import { randomId } from "../api/uuid";
import { useToast } from "../ui/toast";
import type { Action } from "./actions";
import { patchAlert } from "./patch";

export interface Bulk {
  to: Action["to"];
  parts: readonly AlertSelection[];
}

const plain = new Intl.NumberFormat("en");

export function alertsWord(count: number): string {
  return `${plain.format(count)} ${count === 1 ? "alert" : "alerts"}`;
}

export interface Undo {
  /** Says what was done, and offers to undo it until then. */
  offer: (text: string, actions: readonly string[], until: string) => void;
  /** Undoes what was offered last; false where nothing is offered any more. */
  last: () => boolean;
}

/** Puts back what actions have changed, where nobody has changed it since. */
export function useUndo(): Undo {
  const cache = useQueryClient();
  const toast = useToast();
  const offered = useRef<{ actions: readonly string[]; until: number } | undefined>(undefined);
  const undo = useMutation({
    mutationFn: async (ids: readonly string[]) => {
      const sum = { restored: 0, skipped: 0 };
      for (const id of ids) {
        const { restored, skipped } = await undoAction(id);
        sum.restored += restored;
        sum.skipped += skipped;
      }
      return sum;
    },
    retry: (count, error) => count < 2 && isPassing(error),
    onSuccess: ({ restored, skipped }) => {
      const left = skipped > 0 ? ` ${alertsWord(skipped)} had changed meanwhile and stayed.` : "";
      toast(`${alertsWord(restored)} as before.${left}`, "done");
    },
    onError: (error) => toast(`Not undone. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
  const run = (actions: readonly string[]) => {
    offered.current = undefined;
    undo.mutate(actions);
  };
  return {
    offer: (text, actions, until) => {
      offered.current = { actions, until: Date.parse(until) };
      toast(text, "done", { word: "Undo", until, run: () => run(actions) });
    },
    last: () => {
      const { actions, until } = offered.current ?? { actions: [], until: 0 };
      if (Date.now() > until) return false;
      run(actions);
      return true;
    },
  };
}

/**
 * Acknowledges or resolves many alerts, and offers to undo it for as long as the API does. Each part has a name of its
 * own, so that one whose answer was lost is sent again without doing anything twice.
 */
export function useBulkAction(undo: Undo, onDone: () => void) {
  const cache = useQueryClient();
  const toast = useToast();
  const bulk = useMutation({
    mutationFn: async ({ to, parts }: Bulk) => {
      const done = [];
      for (const part of parts) done.push(await changeAlerts(to, part));
      return done;
    },
    retry: (count, error) => count < 2 && isPassing(error),
    onSuccess: (done, { to }) => {
      onDone();
      const changed = done.reduce((sum, result) => sum + result.changed, 0);
      const left = done.reduce((sum, result) => sum + result.already + result.refused + result.unknown, 0);
      const word = to === "ACKNOWLEDGED" ? "acknowledged" : "resolved";
      const rest = left > 0 ? ` ${alertsWord(left)} left as they were.` : "";
      const text = `${alertsWord(changed)} ${word}.${rest}`;
      const undoable = done.filter((result) => result.changed > 0);
      const first = undoable.map(({ undoableUntil }) => undoableUntil).sort()[0];
      if (first === undefined) return toast(text, "done");
      const ids = undoable.map(({ actionId }) => actionId);
      return undo.offer(text, ids, first);
    },
    onError: (error, { to }) =>
      toast(`Not ${to === "ACKNOWLEDGED" ? "acknowledged" : "resolved"}. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
  return {
    isPending: bulk.isPending,
    run: (to: Action["to"], parts: readonly AlertSelection[]) =>
      bulk.mutate({ to, parts: parts.map((part) => ({ ...part, actionId: randomId() })) }),
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
