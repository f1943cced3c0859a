import { expect, test } from "vitest";
import { ApiError } from "../api/errors";
import {
  type Draft,
  draftOf,
  matchesAll,
  moved,
  noQuestion,
  problemsOf,
  requestOf,
  unmetWords,
  wrongPairs,
  wrongSteps,
} from "./policy";

const draft: Draft = {
  routes: [{ name: "Orders", match: {}, webhookIds: ["a"], escalation: [], continue: false }],
  defaultWebhookIds: [],
  defaultEscalation: [],
};

test("what the API leaves out has a value in the draft", () => {
  expect(draftOf({ routes: [{ name: "Orders", webhookIds: ["a"] }], defaultWebhookIds: [] })).toEqual(draft);
});

test("a route moves within the list, and not out of it", () => {
  expect(moved(["a", "b", "c"], 0, 1)).toEqual(["b", "a", "c"]);
  expect(moved(["a", "b", "c"], 2, 0)).toEqual(["c", "a", "b"]);
  expect(moved(["a", "b"], 1, 2)).toEqual(["a", "b"]);
  expect(moved(["a", "b"], 0, -1)).toEqual(["a", "b"]);
});

test("a match without conditions takes all alerts", () => {
  expect(matchesAll({})).toBe(true);
  expect(matchesAll({ scope: { applications: [] }, filter: {} })).toBe(true);
  expect(matchesAll({ filter: { minDurationMs: 0 } })).toBe(false);
  expect(matchesAll({ severities: ["INFO"] })).toBe(false);
});

test("what the server refuses names the route", () => {
  const refused = new ApiError(400, {
    type: "about:blank",
    title: "Bad Request",
    status: 400,
    code: "invalid",
    detail: "the routing policy is not valid",
    errors: [
      { field: "routes[0].match.severities", code: "x", message: "No" },
      { field: "routes[7].name", code: "x", message: "No" },
      { field: "defaultWebhookIds", code: "x", message: "No" },
    ],
  });
  expect(problemsOf(refused, draft)).toEqual([
    "Route “Orders”, match.severities: No",
    "Route 8, name: No",
    "defaultWebhookIds: No",
  ]);
});

test("the question is about a rule, or about a severity and labels", () => {
  expect(requestOf({ ...noQuestion, application: "sap", labels: "team = erp\n" }, undefined)).toEqual({
    severity: "CRITICAL",
    labels: { team: "erp" },
    exchange: { application: "sap" },
  });
  expect(requestOf({ ...noQuestion, rule: "r", attributes: "customer = 42" }, draft)).toEqual({
    ruleId: "r",
    exchange: { attributes: { customer: "42" } },
    policy: draft,
  });
});

test("lines of the question that cannot be read are reported", () => {
  expect(wrongPairs({ ...noQuestion, labels: "team = erp", attributes: "a=1" })).toEqual({});
  expect(wrongPairs({ ...noQuestion, labels: "team", attributes: "a != 1\nb = 2\nc ~ x" })).toEqual({
    labels: "Cannot be read: team. Write each line as name = value.",
    attributes: "Cannot be read: a != 1; c ~ x. Write each line as name = value.",
  });
  expect(wrongPairs({ ...noQuestion, rule: "r", labels: "team" })).toEqual({});
});

test("what does not match is described in words, each once", () => {
  expect(unmetWords(["scope.applications", "labels[0]", "labels[1]", "weather"])).toBe(
    "the application, a label, weather",
  );
});

test.each([
  ["nothing", [], undefined],
  ["a step at once", [[0, "w"]], "Step 1, After: Must be at least 1 min"],
  ["a step after a week", [[10_080, "w"]], undefined],
  ["a step later than that", [[10_081, "w"]], "Step 1, After: Must be at most 10080 min"],
  ["steps in order", [[5, "w"], [6, "w"]], undefined], // biome-ignore format: one case in a line
  ["steps at one time", [[5, "w"], [5, "w"]], "Step 2, After: Must be more than the minutes of the previous step"], // biome-ignore format: one case in a line
  ["a step that notifies nobody", [[5, ""]], "Step 1, Notify: Must name at least one webhook or team"],
] as [string, [number, string][], string | undefined][])("wrong in an escalation: %s", (_, steps, wrong) => {
  expect(wrongSteps(steps.map(([afterMinutes, id]) => ({ afterMinutes, webhookIds: id ? [id] : [] })))).toBe(wrong);
});
