import { useSyncExternalStore } from "react";
import { parseAddress, writeAddress } from "../ui/address";
import { type InboxSearch, parseSearch } from "./filter";

/** A filter that a person has given a name, in this browser. Its address can be given to anybody. */
export interface View {
  name: string;
  search: InboxSearch;
}

const longestName = 60;
const keyOf = (person: string) => `tocsin.views.${person}`;
const listeners = new Set<() => void>();

function read(person: string): string {
  try {
    return localStorage.getItem(keyOf(person)) ?? "[]";
  } catch {
    return "[]";
  }
}

/** What a browser keeps anybody may have changed: what is no view is left out. */
export function parseViews(text: string): readonly View[] {
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return [];
    return list.flatMap((item: { name?: unknown; address?: unknown } | null) =>
      typeof item?.name === "string" && typeof item.address === "string"
        ? [{ name: item.name, search: parseSearch(parseAddress(item.address)) }]
        : [],
    );
  } catch {
    return [];
  }
}

/** Returns false where the browser keeps nothing. */
function write(person: string, views: readonly View[]): boolean {
  try {
    const list = views.map(({ name, search }) => ({ name, address: addressOf(search) }));
    localStorage.setItem(keyOf(person), JSON.stringify(list));
  } catch {
    return false;
  }
  for (const listener of listeners) listener();
  return true;
}

/** The search part of a view's address, "" for the inbox as it is at first. */
export const addressOf = (search: InboxSearch): string => writeAddress({ ...search });

/** A view of the same name is replaced. */
export function saveView(person: string, { name, search }: View): boolean {
  const called = name.trim().slice(0, longestName);
  const others = parseViews(read(person)).filter((view) => view.name !== called);
  return write(
    person,
    [...others, { name: called, search }].sort((a, b) => a.name.localeCompare(b.name)),
  );
}

export function removeView(person: string, name: string): boolean {
  return write(
    person,
    parseViews(read(person)).filter((view) => view.name !== name),
  );
}

/** The views that a person has saved, as this tab and others change them. */
export function useViews(person: string): readonly View[] {
  const text = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      window.addEventListener("storage", listener);
      return () => {
        listeners.delete(listener);
        window.removeEventListener("storage", listener);
      };
    },
    () => read(person),
  );
  return parseViews(text);
}
