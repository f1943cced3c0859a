import { type RefObject, useLayoutEffect, useRef } from "react";

/**
 * Opens a dialog over the page while it is rendered. The dialog is closed while it is still part of
 * the page, because only then does the browser return the focus to where it was.
 */
export function useModal(): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return dialog;
}
