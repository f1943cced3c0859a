import { expect, test } from "vitest";
import { sentence } from "./sentence";

test.each([
  [{}, [], "Whenever an exchange fails, show it in the inbox and tell nobody."],
  [
    { scope: { applications: ["orders"], environments: ["production"] }, filter: { statuses: ["FAILED"] } },
    ["#ops"],
    "Whenever an exchange of orders in production fails, tell #ops once.",
  ],
  [
    {
      scope: { routes: ["a", "b", "c-*"] },
      filter: { statuses: ["COMPLETED"], minDurationMs: 500, errorTypes: ["X"], errorMessageContains: "IBAN" },
    },
    ["#ops", "desk"],
    "Whenever an exchange on a, b or c-* completes with X with “IBAN” in its error after 500 ms or more, tell #ops and desk once.",
  ],
  [{ filter: { statuses: ["FAILED", "COMPLETED"] } }, ["x"], "Whenever an exchange ends, tell x once."],
] as const)("%j", (rule, webhooks, want) => {
  expect(sentence(structuredClone(rule) as Parameters<typeof sentence>[0], webhooks)).toBe(want);
});
