import { expect, test } from "vitest";
import type { Alert, AlertPage } from "./client";
import { applyDelta } from "./delta";

const alert = (second: number, title = "") =>
  ({ id: `a${second}`, title, firedAt: `2026-11-21T10:00:${String(second).padStart(2, "0")}Z` }) as Alert;
const page = (seconds: readonly number[], more: Partial<AlertPage> = {}): AlertPage => ({
  items: seconds.map((second) => alert(second)),
  asOf: "2026-11-21T10:00:40Z",
  ...more,
});
const loaded = (...pages: AlertPage[]) => ({ pages, pageParams: pages.map((_, at) => (at === 0 ? "" : `p${at}`)) });
const ids = ({ pages }: ReturnType<typeof loaded>) => pages.map(({ items }) => items.map(({ id }) => id).join(" "));

test.each([
  ["what is new comes first", [41], [41], ["a41 a30 a20", "a15 a10"]],
  ["several come in their order", [41, 43, 42], [41, 43, 42], ["a43 a42 a41 a30 a20", "a15 a10"]],
  ["what changed stays in its place", [20], [20], ["a30 a20", "a15 a10"]],
  ["what changed at the end of the loaded part stays", [10], [10], ["a30 a20", "a15 a10"]],
  ["what left the filter leaves the list", [30, 15], [], ["a20", "a10"]],
  ["what came into the filter takes its place", [17], [17], ["a30 a20", "a17 a15 a10"]],
  ["what is below the loaded part is left out", [5], [5], ["a30 a20", "a15 a10"]],
])("%s", (_, changed, found, want) => {
  const old = loaded(page([30, 20], { nextCursor: "p1" }), page([15, 10], { nextCursor: "p2" }));
  const changedIds = new Set(changed.map((second) => `a${second}`));
  expect(
    ids(
      applyDelta(
        old,
        changedIds,
        found.map((second) => alert(second)),
      ),
    ),
  ).toEqual(want);
});

test("a list that is loaded to its end takes what is older than all of it", () => {
  expect(ids(applyDelta(loaded(page([30])), new Set(["a5"]), [alert(5)]))).toEqual(["a30 a5"]);
  expect(ids(applyDelta(loaded(page([])), new Set(["a5"]), [alert(5)]))).toEqual(["a5"]);
});

test("a list knows that it holds what it was given last, so that an action reaches that too", () => {
  const { pages } = applyDelta(loaded(page([30])), new Set(["a41"]), [alert(41)]);
  expect(pages[0]?.asOf).toBe("2026-11-21T10:00:41Z");
});

test("what was loaded is not changed in place", () => {
  const old = loaded(page([30, 20]));
  applyDelta(old, new Set(["a30"]), [alert(31)]);
  expect(ids(old)).toEqual(["a30 a20"]);
});
