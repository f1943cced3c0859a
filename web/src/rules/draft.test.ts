import { afterEach, expect, test } from "vitest";
import { initialValues } from "./definition";
import { dropDraft, keepDraft, readDraft } from "./draft";

afterEach(() => sessionStorage.clear());

test("a draft is kept for its rule alone, until it is dropped", () => {
  const values = { ...initialValues, name: "Orders", threshold: undefined };
  keepDraft("r1", { values });
  expect(readDraft("r1")?.values).toEqual(values);
  expect(readDraft(undefined)).toBeUndefined();
  dropDraft("r1");
  expect(readDraft("r1")).toBeUndefined();
});

test.each(["{", "null", "[]", '{"values":{"name":"x"}}', '{"values":7}'])("%s is no draft", (text) => {
  sessionStorage.setItem("tocsin.draft.rule.new", text);
  expect(readDraft(undefined)).toBeUndefined();
});
