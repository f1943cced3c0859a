import { expect, test, vi } from "vitest";
import {
  type Draft,
  type DraftOf,
  draftToTake,
  dropDraft,
  holdDraft,
  keepDraft,
  keptDrafts,
  releaseDraft,
} from "./draft";

type Values = { name: string; filter: { from: string; least: number | undefined; tags: string[] } };
const blank: Values = { name: "", filter: { from: "", least: undefined, tags: [] } };

const at = "2026-11-21T14:00:00Z";
const ofNew: DraftOf<Values> = { person: "ada", kind: { word: "rule", blank }, id: undefined };
const named = (name: string, minute = 0): Draft<Values, unknown> => ({
  values: { ...blank, name },
  at: `2026-11-21T14:${String(minute).padStart(2, "0")}:00Z`,
});
const names = (of = ofNew) => keptDrafts(of).map(({ draft }) => draft.values.name);

test("a draft is kept for its thing and its person alone, until it is dropped", () => {
  expect(keepDraft(ofNew, "a", named("Half"))).toBe(true);
  expect(keptDrafts(ofNew)).toEqual([{ id: "a", draft: named("Half"), held: false }]);
  expect(names({ ...ofNew, id: "r1" })).toEqual([]);
  expect(names({ ...ofNew, person: "bob" })).toEqual([]);
  expect(names({ ...ofNew, kind: { word: "webhook", blank } })).toEqual([]);
  expect(names({ ...ofNew, id: "ne" })).toEqual([]);
  dropDraft(ofNew, "a");
  expect(names()).toEqual([]);
});

test("several are kept beside each other, the latest first", () => {
  keepDraft(ofNew, "a", named("First", 1));
  keepDraft(ofNew, "b", named("Third", 3));
  keepDraft(ofNew, "c", named("Second", 2));
  expect(names()).toEqual(["Third", "Second", "First"]);
});

test("an editor begins with its tab's own, or else with the latest that no open editor has", () => {
  const now = Date.parse(at);
  const second = 1_000;
  keepDraft(ofNew, "a", named("A", 1));
  keepDraft(ofNew, "b", named("B", 2));
  keepDraft(ofNew, "c", named("C", 3));
  holdDraft(ofNew, "c", now);
  expect(draftToTake(ofNew, now + 80 * second)?.id).toBe("b");
  expect(draftToTake(ofNew, now + 91 * second)?.id).toBe("c");
  sessionStorage.clear();
  expect(draftToTake(ofNew, now + 91 * second)?.id).toBe("c");
  holdDraft(ofNew, "a", now);
  releaseDraft("a");
  expect(draftToTake(ofNew, now)?.id).toBe("a");
  expect(draftToTake(ofNew, now - 91 * second)?.id, "the clock was set back").toBe("a");
});

test.each([
  "{",
  "1",
  "null",
  `{"at":"${at}"}`,
  `{"at":"${at}","values":{"name":"of another version"}}`,
  JSON.stringify({ values: { ...blank, filter: "gone" }, at }),
])("a draft that the form cannot read is none: %s", (text) => {
  localStorage.setItem("tocsin.draft.ada.rule.new.a", text);
  expect(names()).toEqual([]);
});

test("a draft that is kept without a name of its own is found", () => {
  localStorage.setItem("tocsin.draft.ada.rule.new", JSON.stringify(named("Former")));
  expect(draftToTake(ofNew)).toMatchObject({ id: "", draft: { values: { name: "Former" } } });
  dropDraft(ofNew, "");
  expect(localStorage).toHaveLength(0);
});

test("a browser that keeps nothing says so", () => {
  vi.stubGlobal("localStorage", {
    setItem: () => {
      throw new DOMException("full", "QuotaExceededError");
    },
  });
  expect(keepDraft(ofNew, "a", named("Half"))).toBe(false);
  holdDraft(ofNew, "a");
  releaseDraft("a");
  expect(draftToTake(ofNew)).toBeUndefined();
  vi.unstubAllGlobals();
});
