import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { alertKeys, changeAlerts, markRead, undoAction } from "../api/alerts";
import type { Alert, AlertSelection, BulkResult, UndoResult } from "../api/client";
import { isPassing, reasonOf } from "../api/errors";
import { randomId } from "../api/uuid";
import { type Tone, useToast } from "../ui/toast";
import { type Action, verbs } from "./actions";
import { patchAlert } from "./patch";

export interface Bulk {
  to: Action["to"];
  parts: readonly AlertSelection[];
  /** What became of the parts that are done, in their order. */
  done: BulkResult[];
}

const plain = new Intl.NumberFormat("en");

export function alertsWord(count: number): string {
  return `${plain.format(count)} ${count === 1 ? "alert" : "alerts"}`;
}

export interface Undoable {
  actions: readonly string[];
  /** Until when the API undoes them. */
  until: string;
}

export interface Undo {
  /** Says what was done, or how far it came, and offers to undo it: for as long as the API does, or for less. */
  offer: (text: string, undoable: Undoable, options?: { tone?: Tone; forMs?: number }) => void;
  /** Undoes what was offered last; false where nothing is offered any more. */
  last: () => boolean;
}

interface Undoing extends Undoable {
  /** What became of the actions that are undone, in their order. */
  done: UndoResult[];
}

/** Puts back what actions have changed, where nobody has changed it since. */
export function useUndo(): Undo {
  const cache = useQueryClient();
  const toast = useToast();
  const offered = useRef<{ undoing: Undoing; until: number; takeBack: () => void } | undefined>(undefined);
  const stands = () => offered.current !== undefined && Date.now() <= offered.current.until;
  const undo = useMutation({
    // A further try goes on where the one before it failed.
    mutationFn: async ({ actions, done }: Undoing) => {
      for (const id of actions.slice(done.length)) done.push(await undoAction(id));
    },
    retry: (count, error) => count < 2 && isPassing(error),
    onSuccess: (_, { done }) => {
      const skipped = sum(done.map((result) => result.skipped));
      const left = skipped > 0 ? ` ${alertsWord(skipped)} had changed meanwhile and stayed.` : "";
      toast(`${alertsWord(restoredBy(done))} as before.${left}`, "done");
    },
    onError: (error, undoing) => {
      const restored = restoredBy(undoing.done);
      const far = restored > 0 ? `${alertsWord(restored)} as before, the rest not:` : "Not undone.";
      const text = `${far} ${reasonOf(error)}`;
      // What was offered meanwhile is what one would undo next.
      const again = isPassing(error) && !stands() && Date.now() < Date.parse(undoing.until);
      if (again) offer(text, undoing, { tone: "failed" });
      else toast(text, "failed");
    },
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
  const run = (undoing: Undoing) => {
    offered.current?.takeBack();
    offered.current = undefined;
    undo.mutate(undoing);
  };
  const offer = (
    text: string,
    undoing: Undoing,
    { tone = "done", forMs = Infinity }: Parameters<Undo["offer"]>[2] = {},
  ) => {
    const until = Math.min(Date.parse(undoing.until), Date.now() + forMs);
    const remedy = { word: "Undo", until: new Date(until).toISOString(), run: () => run(undoing) };
    offered.current = { undoing, until, takeBack: toast(text, tone, remedy) };
  };
  return {
    offer: (text, undoable, options) => offer(text, { ...undoable, done: [] }, options),
    last: () => {
      if (!offered.current || !stands()) return false;
      run(offered.current.undoing);
      return true;
    },
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
const restoredBy = (done: readonly UndoResult[]) => sum(done.map(({ restored }) => restored));
const changedBy = (done: readonly BulkResult[]) => sum(done.map(({ changed }) => changed));

/**
 * Acknowledges or resolves many alerts, and offers to undo it for as long as the API does. Each part has a name of its
 * own, so that one whose answer was lost is sent again without doing anything twice. Where a part fails, those before it
 * stand, and can be undone.
 */
export function useBulkAction(undo: Undo, onDone: () => void) {
  const cache = useQueryClient();
  const toast = useToast();
  const tell = (text: string, done: readonly BulkResult[], tone: Tone) => {
    const undoable = done.filter((result) => result.changed > 0);
    const until = undoable.map(({ undoableUntil }) => undoableUntil).sort()[0];
    if (until === undefined) return toast(text, tone);
    return undo.offer(text, { actions: undoable.map(({ actionId }) => actionId), until }, { tone });
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
      const rest = left > 0 ? ` ${alertsWord(left)} left as they were.` : "";
      tell(`${alertsWord(changedBy(done))} ${verbs[to]}.${rest}`, done, "done");
    },
    onError: (error, { to, done }) => {
      const changed = changedBy(done);
      const far = changed > 0 ? `${alertsWord(changed)} ${verbs[to]}, the rest not:` : `Not ${verbs[to]}.`;
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
