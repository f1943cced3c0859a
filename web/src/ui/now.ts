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

/** It does not advance while there is no listener; the next listener sets it. */
function current(): number {
  if (timer === undefined && Math.abs(Date.now() - now) >= tickMs) now = Date.now();
  return now;
}

/**
 * The result of `read` for the present, in milliseconds. It is computed once a second, at the same
 * moment for the whole page. The component renders again only when the result changes: for "12 min
 * ago" once a minute.
 */
export function useAtNow<T extends string | number | boolean>(read: (now: number) => T): T {
  return useSyncExternalStore(subscribe, () => read(current()));
}

/** The present to the second, in milliseconds. */
export function useNow(): number {
  return useAtNow((now) => now);
}

const minuteMs = 60_000;

/** The minute that the present is in, in milliseconds. */
export function useMinute(): number {
  return useAtNow((now) => Math.floor(now / minuteMs) * minuteMs);
}
