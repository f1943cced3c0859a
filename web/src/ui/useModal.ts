import { type RefObject, useLayoutEffect, useRef } from "react";

/**
 * Opens a dialog over the page for as long as it is rendered. It is closed while it is still part of the page: that is when
 * the browser gives the focus back to where it was.
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
