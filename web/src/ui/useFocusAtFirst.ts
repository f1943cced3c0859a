import { type RefObject, useEffect, useRef } from "react";

/**
 * Gives a field the focus once, when its page appears: for pages whose first thing to do is to write there. Not where a
 * keyboard would cover half of the screen.
 */
export function useFocusAtFirst<T extends HTMLElement>(): RefObject<T | null> {
  const field = useRef<T>(null);
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    if (!window.matchMedia("(pointer: coarse)").matches) field.current?.focus({ preventScroll: true });
  }, []);
  return field;
}
