import { useSyncExternalStore } from "react";

/** A choice that this browser remembers, shared by all its tabs. */
export interface Setting<T extends string> {
  current: () => T;
  set: (value: T) => void;
  subscribe: (listener: () => void) => () => void;
}

/** The first value is the default. If the browser stores nothing, a choice lasts as long as the page. */
export function setting<const T extends string>(name: string, values: readonly [T, ...T[]]): Setting<T> {
  const key = `tocsin.${name}`;
  const listeners = new Set<() => void>();
  let unsaved: T | undefined;
  const notify = () => {
    for (const listener of listeners) listener();
  };
  const onStorage = (event: StorageEvent) => {
    if (event.key === key || event.key === null) notify();
  };
  return {
    current: () => {
      try {
        const stored = localStorage.getItem(key);
        return values.find((value) => value === (stored ?? unsaved)) ?? values[0];
      } catch {
        return unsaved ?? values[0];
      }
    },
    set: (value) => {
      unsaved = undefined;
      try {
        localStorage.setItem(key, value);
      } catch {
        unsaved = value;
      }
      notify();
    },
    subscribe: (listener) => {
      if (listeners.size === 0) window.addEventListener("storage", onStorage);
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) window.removeEventListener("storage", onStorage);
      };
    },
  };
}

export function useSetting<T extends string>({ subscribe, current }: Setting<T>): T {
  return useSyncExternalStore(subscribe, current);
}

/** Whether single letters and signs have an effect. Ctrl K, Enter, Escape and the arrows always do. */
export const singleKeys = setting("keys", ["on", "off"]);
