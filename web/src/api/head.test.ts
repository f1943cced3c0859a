import { expect, test } from "vitest";
import type { Alert, AlertPage } from "./client";
import { mergeHead } from "./head";

const page = (ids: string, nextCursor = "more"): AlertPage => ({
  items: [...ids].map((id) => ({ id }) as Alert),
  asOf: ids,
  nextCursor,
});

test.each([
  ["what is the same stays", ["cd", "ef"], "cd", ["cd", "ef"]],
  ["new ones come before", ["cd", "ef"], "bc", ["bcd", "ef"]],
  ["those that are gone from the head leave", ["cde", "fg"], "bde", ["bde", "fg"]],
  ["a head that reaches into the second page replaces the first", ["cd", "efg"], "ce", ["cefg"]],
  ["without a meeting the list begins anew", ["cd", "ef"], "ab", ["ab"]],
  ["an empty list is empty", ["cd"], "", [""]],
])("%s", (_, old, head, want) => {
  const merged = mergeHead({ pages: old.map((ids) => page(ids)), pageParams: old.map((_, at) => `${at}`) }, page(head));
  expect(merged.pages.map(({ items }) => items.map(({ id }) => id).join(""))).toEqual(want);
  expect(merged.pageParams).toHaveLength(merged.pages.length);
  expect(merged.pages[0]?.asOf).toBe(head);
});

test("a head that is everything is the list", () => {
  const old = { pages: [page("ab"), page("cd", "")], pageParams: ["", "1"] };
  expect(mergeHead(old, { ...page("b"), nextCursor: "" }).pages).toHaveLength(1);
});
