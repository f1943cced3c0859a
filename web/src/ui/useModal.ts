import { type RefObject, useContext, useLayoutEffect, useRef } from "react";
import { PageShown } from "./pageShown";

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
    if (!shown) return;
    element?.showModal();
    return () => element?.close();
  }, [shown]);
  return dialog;
}
