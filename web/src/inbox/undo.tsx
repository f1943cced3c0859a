import { useMutation, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useMemo, useRef } from "react";
import { alertKeys, undoAction } from "../api/alerts";
import type { UndoResult } from "../api/client";
import { isPassing, reasonOf } from "../api/errors";
import { useCommands } from "../ui/commands";
import { type Tone, useToast } from "../ui/toast";
import { alertsWord, sum } from "../ui/words";

export interface Undoable {
  actions: readonly string[];
  /** Until when the API undoes them. */
  until: string;
}

interface OfferOptions {
  tone?: Tone;
  /** How long the undo is offered; by default, as long as the API allows it. */
  forMs?: number;
}

/** Says what was done, or how far it came, and offers to undo it. */
type Offer = (text: string, undoable: Undoable, options?: OfferOptions) => void;

/** Takes back the offer to undo an action that was undone in another way. */
type Withdraw = (actionId: string) => void;

const OfferContext = createContext<{ offer: Offer; withdraw: Withdraw }>({ offer: () => {}, withdraw: () => {} });

/** Every action on alerts offers its undo here, so that the undo key undoes the last one, wherever it was started. */
export function useOfferUndo(): Offer {
  return useContext(OfferContext).offer;
}

export function useWithdrawUndo(): Withdraw {
  return useContext(OfferContext).withdraw;
}

interface Undoing extends Undoable {
  /** The results of the undone actions, in order. */
  done: UndoResult[];
}

/** Restores what actions have changed, if nobody has changed it since. There is one in the application. */
export function UndoProvider({ children }: { children: ReactNode }) {
  const cache = useQueryClient();
  const toast = useToast();
  const offered = useRef<{ undoing: Undoing; until: number; takeBack: () => void } | undefined>(undefined);
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
      const again = isPassing(error) && !isOffered() && Date.now() < Date.parse(undoing.until);
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
  const offer = (text: string, undoing: Undoing, { tone = "done", forMs = Infinity }: OfferOptions = {}) => {
    const until = Math.min(Date.parse(undoing.until), Date.now() + forMs);
    const remedy = { word: "Undo", until: new Date(until).toISOString(), run: () => run(undoing) };
    offered.current = { undoing, until, takeBack: toast(text, tone, remedy) };
  };
  useCommands([
    {
      id: "undo",
      section: "Inbox",
      label: "Undo the last acknowledgement, resolution or assignment",
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
  const offers = useMemo<{ offer: Offer; withdraw: Withdraw }>(
    () => ({
      offer: (text, undoable, options) => latest.current(text, { ...undoable, done: [] }, options),
      withdraw: (actionId) => {
        const { undoing, takeBack } = offered.current ?? {};
        if (undoing?.actions.length !== 1 || undoing.actions[0] !== actionId) return;
        takeBack?.();
        offered.current = undefined;
      },
    }),
    [],
  );
  return <OfferContext value={offers}>{children}</OfferContext>;
}

const restoredBy = (done: readonly UndoResult[]) => sum(done.map(({ restored }) => restored));
