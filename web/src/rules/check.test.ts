import { expect, test } from "vitest";
import cases from "../../../testdata/rule_cases.json";
import type { FieldError, RuleDefinition } from "../api/client";
import { check } from "./check";

/**
 * Errors that only the API finds: it parses the request, compiles expressions and templates, and
 * knows the webhooks.
 */
const ofTheAPI = new Set(["unknown_field", "null", "type", "regexp", "template", "not_found"]);

const texts = (errors: readonly FieldError[]) => errors.map((e) => `${e.field} ${e.code}: ${e.message}`).sort();

test.each(cases)("$name", ({ rule, errors }) => {
  // A form cannot contain what the API cannot even parse.
  if (errors.some(({ code }) => code === "type" || code === "null")) return;
  const known = errors.filter(({ code }) => !ofTheAPI.has(code));
  expect(texts(check(rule as Partial<RuleDefinition>))).toEqual(texts(known));
});
