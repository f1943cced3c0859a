import { useEffect, useRef } from "react";

/** The keys that move, and go on doing so for as long as they are held. What any other key does is meant once. */
const moving: ReadonlySet<string> = new Set(["j", "k", "arrowdown", "arrowup", "pagedown", "pageup"]);

/**
 * Single keys that act while the reader is not typing and no dialog is open. A key with Ctrl, Alt or Meta belongs to the
 * browser, and Enter on a link or a button to that. Keys are named in lower case. A handler that returns false has not
 * used its key. A key that is held acts once, but for those that move.
 */
export function useKeys(handlers: Readonly<Record<string, (event: KeyboardEvent) => unknown>>): void {
  const latest = useRef(handlers);
  useEffect(() => {
    latest.current = handlers;
  });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
      if (isTaken(event)) return;
      const key = event.key.toLowerCase();
      if (event.repeat && !moving.has(key)) return;
      const handler = latest.current[key];
      if (handler && handler(event) !== false) event.preventDefault();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}

function isTaken(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (document.querySelector("dialog[open]")) return true;
  // An open menu's letters are its own.
  if (target.hasAttribute("aria-haspopup") && target.getAttribute("aria-expanded") === "true") return true;
  const typing = "input:not([type=checkbox]), textarea, select, [role=listbox], [role=combobox]";
  if (target.isContentEditable || target.closest(typing)) return true;
  return event.key === "Enter" && target.closest("a, button") !== null;
}
