import { describe, expect, test } from "vitest";
import known from "../../../testdata/template_variables.json";
import { complete, offers, openAt, pieces } from "./completion";
import { attributePrefix, bodyVariables, labelPrefix, variables, withKeys } from "./variables";

test("the variables are those of the API", () => {
  const want = known.filter(
    ({ inTexts, name }) => inTexts && ![attributePrefix, labelPrefix].some((prefix) => name.startsWith(prefix)),
  );
  expect(variables).toEqual(want.map(({ name, description }) => ({ name, description })));
  const inBodies = known.filter(({ inTexts }) => !inTexts).map(({ name, description }) => ({ name, description }));
  expect(bodyVariables.slice(variables.length)).toEqual(inBodies);
  expect(
    withKeys(["team"], ["http.status"])
      .slice(-2)
      .map(({ name }) => name),
  ).toEqual(["rule.labels.team", "exchange.attributes.http.status"]);
});

/** The bar marks the caret. */
const at = (marked: string) => [marked.replace("|", ""), marked.indexOf("|")] as const;

describe("completion", () => {
  test.each([
    ["{{|", ""],
    ["{{exch|ange.route}}", "exch"],
    ["{{{ rule.|", "rule."],
    ["{{#count.group|}}", "count.group"],
    ["a {{b}} {{exchange.|", "exchange."],
  ])("%s is within a name", (marked, typed) => {
    expect(openAt(...at(marked))?.typed).toBe(typed);
  });

  test.each(["|", "{|", "{{rule.name}}|", "{{rule.name}|}", "{{ rule.name |}}", "plain| {{x}}"])(
    "%s is not within a name",
    (marked) => {
      expect(openAt(...at(marked))).toBeUndefined();
    },
  );

  test.each([
    ["{{exc|", "{{exchange.route}}|"],
    ["{{exc|}} failed", "{{exchange.route}}| failed"],
    ["{{exc|hange.rout}}", "{{exchange.route}}|"],
    ["{{{exc|", "{{{exchange.route}}}|"],
    ["{{ exc| }} x", "{{ exchange.route }}| x"],
    ["{{#exc|", "{{#exchange.route}}|"],
    ['{"route": "{{exc|"}', '{"route": "{{exchange.route}}|"}'],
  ])("%s becomes %s", (marked, want) => {
    const [text, caret] = at(marked);
    const open = openAt(text, caret);
    if (!open) throw new Error("no name is open");
    const done = complete(text, open, "exchange.route");
    expect(`${done.text.slice(0, done.caret)}|${done.text.slice(done.caret)}`).toBe(want);
  });

  test("what begins as typed is offered before what only has it", () => {
    const names = offers(variables, "route").map((v) => v.name);
    expect(names).toContain("exchange.route");
    expect(offers(variables, "rule").map((v) => v.name)[0]).toBe("rule.name");
    expect(offers(variables, "exchange.route")).toEqual([]);
    expect(offers(variables, "")).toHaveLength(8);
  });
});

test("the tag that the API complains of is marked, whatever comes before it", () => {
  const looks = (template: string, complaint?: string) =>
    pieces(template, complaint)
      .filter((p) => p.look !== "plain")
      .map((p) => [p.text, p.look]);
  expect(looks("😀 {{a}}\n😀 {{b}} {{c}}", "Unknown variable (line 2, column 3)")).toEqual([
    ["{{a}}", "tag"],
    ["{{b}}", "wrong"],
    ["{{c}}", "tag"],
  ]);
  expect(looks("x {{a", "The tag is never closed (line 1, column 3)")).toEqual([["{{a", "wrong"]]);
  expect(looks("{{a}}", "Must be at most 3 characters")).toEqual([["{{a}}", "tag"]]);
  expect(
    pieces("a{{{b}}}c", undefined)
      .map((p) => p.text)
      .join(""),
  ).toBe("a{{{b}}}c");
});
