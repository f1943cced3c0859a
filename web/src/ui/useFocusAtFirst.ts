import { type RefObject, useEffect, useRef } from "react";

/**
 * Gives a field the focus once, when its page appears: for pages on which people first write there.
 * Not if a keyboard would cover half of the screen.
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
