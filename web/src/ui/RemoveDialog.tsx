import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ConfirmDialog } from "./ConfirmDialog";
import { useToast } from "./toast";

interface Props {
  title: string;
  /** What the button does, in words. */
  action: string;
  remove: () => Promise<unknown>;
  /** The message after the removal. */
  done: string;
  /** The queries to repeat then. */
  stale: QueryKey;
  onClose: () => void;
  /** The consequences. */
  children: ReactNode;
}

/** Asks before something is removed permanently, removes it, and confirms it. The dialog shows a refusal. */
export function RemoveDialog({ title, action, remove, done, stale, onClose, children }: Props) {
  const cache = useQueryClient();
  const toast = useToast();
  const removal = useMutation({
    mutationFn: remove,
    onSuccess: async () => {
      onClose();
      toast(done, "done");
      await cache.invalidateQueries({ queryKey: stale });
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
