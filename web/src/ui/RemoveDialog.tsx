import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { reasonOf } from "../api/errors";
import { ConfirmDialog } from "./ConfirmDialog";
import { useToast } from "./toast";
import { useHere } from "./useHere";

interface Props {
  title: string;
  /** What the button does, in words. */
  action: string;
  remove: () => Promise<unknown>;
  /** The message after the removal. */
  done: string;
  /** That it did not happen, in a sentence. */
  notDone: string;
  /** The queries to repeat then. */
  stale: QueryKey;
  onClose: () => void;
  /** The consequences. */
  children: ReactNode;
}

/**
 * Asks before something is removed permanently, removes it, and confirms it. The dialog shows a refusal; if it was closed
 * in the meantime, a message does.
 */
export function RemoveDialog({ title, action, remove, done, notDone, stale, onClose, children }: Props) {
  const cache = useQueryClient();
  const toast = useToast();
  const here = useHere();
  const removal = useMutation({
    mutationFn: remove,
    onSuccess: async () => {
      if (here()) onClose();
      toast(done, "done");
      await cache.invalidateQueries({ queryKey: stale });
    },
    onError: (error) => {
      if (!here()) toast(`${notDone} ${reasonOf(error)}`, "failed");
    },
  });
  return (
    <ConfirmDialog
      title={title}
      action={action}
      busy={removal.isPending}
      error={removal.error}
      onConfirm={() => removal.mutate()}
      onClose={onClose}
    >
      {children}
    </ConfirmDialog>
  );
}
