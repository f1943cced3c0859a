import { useEffect } from "react";

/**
 * Moves the focus when the button that removes an entry of a list goes with its entry: to that
 * button of the next entry, of the previous one, or to what adds one. The first two have
 * `data-remove` with the name of the list, the last `data-add`. If the list is gone as well, its page
 * is, and the next one decides about the focus.
 */
export function useRemovalFocus(): void {
  useEffect(() => {
    /** The button with the focus, and those of its list. */
    let focused: { button: HTMLElement; all: readonly HTMLElement[]; list: string } | undefined;
    const observer = new MutationObserver(() => {
      if (!focused || focused.button.isConnected) return;
      const { button, all, list } = focused;
      leave();
      if (document.activeElement !== document.body) return;
      const at = all.indexOf(button);
      const next = [...all.slice(at + 1), ...all.slice(0, at).reverse()].find((other) => other.isConnected);
      (next ?? named("add", list)[0])?.focus();
    });
    const leave = () => {
      observer.disconnect();
      focused = undefined;
    };
    const onFocus = ({ target }: FocusEvent) => {
      leave();
      const list = target instanceof HTMLElement ? target.dataset.remove : undefined;
      if (list === undefined) return;
      focused = { button: target as HTMLElement, all: named("remove", list), list };
      observer.observe(document.body, { childList: true, subtree: true });
    };
    document.addEventListener("focusin", onFocus);
    return () => {
      leave();
      document.removeEventListener("focusin", onFocus);
    };
  }, []);
}

function named(kind: "remove" | "add", list: string): readonly HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(`[data-${kind}="${CSS.escape(list)}"]:not(:disabled)`)];
}
