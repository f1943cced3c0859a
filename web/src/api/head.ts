import type { InfiniteData } from "@tanstack/react-query";
import type { AlertPage } from "./client";

type Pages = InfiniteData<AlertPage, string>;

/**
 * Puts a first page that was asked anew before what is loaded of a list. Where the two do not meet, because more came
 * meanwhile than a page holds, the list begins anew with that page.
 */
export function mergeHead(old: Pages, head: AlertPage): Pages {
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
