import { useBlocker } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ConfirmDialog } from "./ConfirmDialog";

interface Props {
  /** Whether there is something to lose. It is called when somebody leaves. */
  dirty: () => boolean;
  /** Whether the page depends on the whole address, and not only on its path. */
  whole?: boolean;
  /** Whether closing the page would also lose it; the default is `dirty`. */
  losable?: () => boolean;
  /** The changes survive leaving, and this text says so. */
  keep?: string;
  /** Called when somebody leaves and discards the changes. */
  onLeave?: () => void;
  /** What would be lost. */
  children: ReactNode;
}

/** Asks before somebody leaves a page with unsaved changes. */
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
      action="Discard changes"
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
