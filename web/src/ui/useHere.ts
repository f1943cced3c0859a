import { useEffect, useRef } from "react";

/**
 * Returns whether the component is still on the page: the answer to a request may come when the reader has gone elsewhere,
 * and must not take them away from there.
 */
export function useHere(): () => boolean {
  const here = useRef(false);
  useEffect(() => {
    here.current = true;
    return () => {
      here.current = false;
    };
  }, []);
  return () => here.current;
}
