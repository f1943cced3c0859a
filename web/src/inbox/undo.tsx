import { useMutation, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useMemo, useRef } from "react";
import { alertKeys, undoAction } from "../api/alerts";
import type { UndoResult } from "../api/client";
import { isPassing, reasonOf } from "../api/errors";
import { serverNow } from "../api/status";
import { useCommands } from "../ui/commands";
import { type Tone, useToast } from "../ui/toast";
import { alertsWord, sum } from "../ui/words";

export interface Undoable {
  actions: readonly string[];
  /** Until when the API undoes them. */
  until: string;
}

interface OfferOptions {
  /** What `take` returned for the action. */
  place: number;
  tone?: Tone;
  /** How long the undo is offered; by default, as long as the API allows it. */
  forMs?: number;
}

interface Undo {
  /** Begins an action, and returns its place in the order of the actions: answers may arrive in another order. */
  take: () => number;
  /** Says what was done, or how far it came, and offers to undo it unless a later action was done meanwhile. */
  offer: (text: string, undoable: Undoable, options: OfferOptions) => void;
  /** Notes that an action without an undo was done: the undo key must not undo an older one in its place. */
  supersede: (place: number) => void;
}

const UndoContext = createContext<Undo>({ take: () => 0, offer: () => {}, supersede: () => {} });

/** Every action on alerts is noted here, so that the undo key undoes the last one, wherever it was started. */
export function useUndo(): Undo {
  return useContext(UndoContext);
}

interface Undoing extends Undoable {
  place: number;
  /** The results of the undone actions, in order. */
  done: UndoResult[];
}

/** How long an undo is offered at least. */
const leastMs = 10_000;

/** Restores what actions have changed, if nobody has changed it since. There is one in the application. */
export function UndoProvider({ children }: { children: ReactNode }) {
  const cache = useQueryClient();
  const toast = useToast();
  const offered = useRef<{ undoing: Undoing; until: number; takeBack: () => void } | undefined>(undefined);
  const taken = useRef(0);
  /** The place of the last action that was done. */
  const last = useRef(0);
  const isOffered = () => offered.current !== undefined && Date.now() <= offered.current.until;
  const undo = useMutation({
    // A retry continues where the previous attempt failed.
    mutationFn: async ({ actions, done }: Undoing) => {
      for (const id of actions.slice(done.length)) done.push(await undoAction(id));
    },
    retry: (count, error) => count < 2 && isPassing(error),
    onSuccess: (_, { done }) => {
      const skipped = sum(done.map((result) => result.skipped));
      const rest = skipped > 0 ? ` ${alertsWord(skipped)} changed in the meantime and stay as they are.` : "";
      toast(`${alertsWord(restoredBy(done))} restored.${rest}`, "done");
    },
    onError: (error, undoing) => {
      const restored = restoredBy(undoing.done);
      const far = restored > 0 ? `${alertsWord(restored)} restored, but not the rest.` : "Not undone.";
      const text = `${far} ${reasonOf(error)}`;
      // An action that was offered in the meantime is the next one to undo.
      const again = isPassing(error) && !isOffered() && serverNow(cache) < Date.parse(undoing.until);
      if (again) offer(text, undoing, "failed");
      else toast(text, "failed");
    },
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
  const run = (undoing: Undoing) => {
    offered.current?.takeBack();
    offered.current = undefined;
    undo.mutate(undoing);
  };
  const offer = (text: string, undoing: Undoing, tone: Tone, forMs = Infinity) => {
    if (undoing.place < last.current) return toast(text, tone);
    last.current = undoing.place;
    // Before the server has reported its time, its clock may be far behind, and the action was done just now.
    const leftMs = Math.max(Date.parse(undoing.until) - serverNow(cache), leastMs);
    const until = Date.now() + Math.min(leftMs, forMs);
    const remedy = { word: "Undo", until: new Date(until).toISOString(), run: () => run(undoing) };
    offered.current = { undoing, until, takeBack: toast(text, tone, remedy) };
  };
  useCommands([
    {
      id: "undo",
      section: "Inbox",
      label: "Undo last acknowledgement, resolution or assignment",
      keys: ["z"],
      run: () => {
        if (offered.current && isOffered()) return run(offered.current.undoing);
        // The answer of an undo that is on its way says what came of it.
        if (!undo.isPending) toast("Nothing to undo.", "done");
      },
    },
  ]);
  const latest = useRef(offer);
  latest.current = offer;
  const value = useMemo<Undo>(
    () => ({
      take: () => ++taken.current,
      offer: (text, undoable, { place, tone = "done", forMs }) =>
        latest.current(text, { ...undoable, place, done: [] }, tone, forMs),
      supersede: (place) => {
        if (place < last.current) return;
        last.current = place;
        offered.current?.takeBack();
        offered.current = undefined;
      },
    }),
    [],
  );
  return <UndoContext value={value}>{children}</UndoContext>;
}

const restoredBy = (done: readonly UndoResult[]) => sum(done.map(({ restored }) => restored));
