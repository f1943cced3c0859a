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
  ["without a meeting the list starts again", ["cd", "ef"], "ab", ["ab"]],
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

const minute = (minutes: number) => new Date(Date.UTC(2026, 0, 1, 0, minutes)).toISOString();
/** A search: alerts that fired one minute apart, and the minute back to which it searched. */
const search = (minutes: number[], searchedTo: number | undefined): AlertPage => ({
  items: minutes.map((at) => ({ id: `${at}`, firedAt: minute(at) }) as Alert),
  asOf: "",
  nextCursor: searchedTo === undefined ? "" : "more",
  ...(searchedTo === undefined ? {} : { searchedTo: minute(searchedTo) }),
});

test.each([
  ["nothing found above leaves what is below", [search([55], 50), search([31], 20)], search([], 52), [[], [31]], 2],
  ["what is found above comes before", [search([], 50), search([], 20)], search([59], 52), [[59], []], 2],
  ["what is gone from above leaves", [search([58, 51], 50), search([], 20)], search([59], 52), [[59, 51], []], 2],
  ["pages that the head has looked at go", [search([58], 50), search([44, 30], 20)], search([], 40), [[30]], 1],
  [
    "below the end of everything nothing is left",
    [search([58], 50), search([44], undefined)],
    search([], 45),
    [[44]],
    1,
  ],
])("of a search, %s", (_, pages, head, want, count) => {
  const merged = mergeHead({ pages, pageParams: pages.map((_, at) => `${at}`) }, head);
  expect(merged.pages.map(({ items }) => items.map(({ id }) => Number(id)))).toEqual(want);
  expect(merged.pageParams).toHaveLength(count);
});
