import { afterEach, expect, test, vi } from "vitest";
import { initialValues } from "./definition";
import { type DraftOf, dropDraft, keepDraft, readDraft } from "./draft";

afterEach(() => localStorage.clear());

const at = "2026-11-21T14:00:00Z";
const ofNew: DraftOf = { person: "ada", ruleId: undefined };

test("a draft is kept for its rule and its person alone, until it is dropped", () => {
  const draft = { values: { ...initialValues, name: "Half" }, at };
  expect(keepDraft(ofNew, draft)).toBe(true);
  expect(readDraft(ofNew)).toEqual(draft);
  expect(readDraft({ ...ofNew, ruleId: "r1" })).toBeUndefined();
  expect(readDraft({ ...ofNew, person: "bob" })).toBeUndefined();
  dropDraft(ofNew);
  expect(readDraft(ofNew)).toBeUndefined();
});

test.each([
  "{",
  "1",
  "null",
  `{"at":"${at}"}`,
  `{"at":"${at}","values":{"name":"of another version"}}`,
  JSON.stringify({ values: { ...initialValues, filter: "gone" }, at }),
])("a draft that the form cannot read is none: %s", (text) => {
  localStorage.setItem("tocsin.draft.ada.rule.new", text);
  expect(readDraft(ofNew)).toBeUndefined();
});

test("a browser that keeps nothing says so", () => {
  vi.stubGlobal("localStorage", {
    setItem: () => {
      throw new DOMException("full", "QuotaExceededError");
    },
  });
  expect(keepDraft(ofNew, { values: initialValues, at })).toBe(false);
  vi.unstubAllGlobals();
});
