import { useSyncExternalStore } from "react";

const tickMs = 1_000;
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, tickMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Nothing moves it while nobody listens; who comes first after that sets it. */
function current(): number {
  if (timer === undefined && Date.now() - now >= tickMs) now = Date.now();
  return now;
}

/** The present, in milliseconds, moving once a second for the whole page at the same moment. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, current);
}
