import type { InfiniteData } from "@tanstack/react-query";
import type { AlertPage } from "./client";

type Pages = InfiniteData<AlertPage, string>;

/**
 * Puts a new first page before the loaded part of a list. If the two do not meet, because more
 * alerts came meanwhile than a page holds, the list begins again with that page.
 */
export function mergeHead(old: Pages, head: AlertPage): Pages {
  if (head.searchedTo) return mergeSearch(old, head, Date.parse(head.searchedTo));
  const last = head.items.at(-1)?.id;
  const fresh: Pages = { pages: [head], pageParams: [""] };
  if (last === undefined || !head.nextCursor) return fresh;
  const page = old.pages.findIndex(({ items }) => items.some(({ id }) => id === last));
  const meeting = old.pages[page];
  if (!meeting) return fresh;
  const rest = meeting.items.slice(meeting.items.findIndex(({ id }) => id === last) + 1);
  const below = old.pages.slice(page + 1);
  const first: AlertPage = { ...meeting, asOf: head.asOf, items: [...head.items, ...rest] };
  return { pages: [first, ...below], pageParams: ["", ...old.pageParams.slice(page + 1)] };
}

/** A page of a search ends at an instant and not at an alert: older alerts stay. */
function mergeSearch(old: Pages, head: AlertPage, end: number): Pages {
  const page = old.pages.findIndex((candidate) => reach(candidate) < end);
  const meeting = old.pages[page];
  if (!meeting) return { pages: [head], pageParams: [""] };
  const known = new Set(head.items.map(({ id }) => id));
  const rest = meeting.items.filter(({ id, firedAt }) => Date.parse(firedAt) <= end && !known.has(id));
  const first: AlertPage = { ...meeting, asOf: head.asOf, items: [...head.items, ...rest] };
  return { pages: [first, ...old.pages.slice(page + 1)], pageParams: ["", ...old.pageParams.slice(page + 1)] };
}

/** The instant back to which a page and those before it are complete. */
function reach({ searchedTo, nextCursor, items }: AlertPage): number {
  const at = searchedTo ?? (nextCursor ? items.at(-1)?.firedAt : undefined);
  return at === undefined ? Number.NEGATIVE_INFINITY : Date.parse(at);
}
