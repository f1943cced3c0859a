import { useBlocker } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ConfirmDialog } from "./ConfirmDialog";

interface Props {
  /** Whether there is something to lose. It is asked when somebody leaves. */
  dirty: () => boolean;
  /** Whether the page is about what the whole address names, not its path alone. */
  whole?: boolean;
  /** Whether closing the page would lose it, too; the same as `dirty` unless it is given. */
  losable?: () => boolean;
  /** What is changed outlives leaving, and this says so. */
  keep?: string;
  /** Called when somebody leaves and gives the changes up. */
  onLeave?: () => void;
  /** What would be lost. */
  children: ReactNode;
}

/** Asks before somebody leaves a page with changes that are not saved. */
export function LeaveGuard({ dirty, losable = dirty, whole = false, keep, onLeave, children }: Props) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      dirty() &&
      (current.pathname !== next.pathname || (whole && JSON.stringify(current.search) !== JSON.stringify(next.search))),
    enableBeforeUnload: losable,
    withResolver: true,
  });
  if (blocker.status !== "blocked") return null;
  return (
    <ConfirmDialog
      title="Leave without saving?"
      action="Discard the changes"
      busy={false}
      error={null}
      onConfirm={() => {
        onLeave?.();
        blocker.proceed();
      }}
      {...(keep ? { milder: { word: keep, run: blocker.proceed } } : {})}
      onClose={blocker.reset}
    >
      {children}
    </ConfirmDialog>
  );
}
