import { type RefObject, useContext, useLayoutEffect, useRef, useSyncExternalStore } from "react";
import { PageShown } from "./pageShown";

const listeners = new Set<() => void>();
/** The open dialogs, the topmost last. */
let opened: readonly HTMLDialogElement[] = [];

function setOpened(next: readonly HTMLDialogElement[]): void {
  opened = next;
  for (const each of listeners) each();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The dialog that lies over everything else: the browser takes clicks and keys from all that is outside of it. */
export function useTopmostDialog(): HTMLDialogElement | undefined {
  return useSyncExternalStore(subscribe, () => opened.at(-1));
}

/**
 * Opens a dialog over the page while it is rendered. The dialog is closed while it is still part of
 * the page, because only then does the browser return the focus to where it was. It is also closed
 * while the page waits behind the sign-in, which nobody could use beside an open dialog.
 */
export function useModal(): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = useContext(PageShown);
  useLayoutEffect(() => {
    const element = dialog.current;
    if (!shown || !element) return;
    element.showModal();
    setOpened([...opened, element]);
    return () => {
      setOpened(opened.filter((other) => other !== element));
      element.close();
    };
  }, [shown]);
  return dialog;
}
