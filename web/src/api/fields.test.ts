import { expect, test } from "vitest";
import { ApiError, unreachable } from "./errors";
import { placeErrors } from "./fields";

const refusal = (...fields: [string, string][]) =>
  new ApiError(400, {
    status: 400,
    code: "invalid",
    detail: "The rule is not valid.",
    errors: fields.map(([field, message]) => ({ field, message, code: "x" })),
  });

test("each complaint goes to the longest name that the form knows", () => {
  const error = refusal(
    ["filter.statuses[0]", "Not a status."],
    ["filter.attributes[1].op", "Unknown."],
    ["filter.statuses", "Too many."],
    ["filterless", "Odd."],
    ["routes[1].escalation[0].afterMinutes", "Too late."],
  );
  expect(placeErrors(error, ["filter", "filter.statuses"])).toEqual({
    fields: { "filter.statuses": "Not a status. Too many.", filter: "Unknown." },
    rest: ["Filterless: Odd.", "Routes 2, escalation 1, after minutes: Too late."],
  });
});

test("a refusal without fields is for the whole form", () => {
  expect(placeErrors(refusal(), ["name"])).toEqual({ fields: {}, rest: ["The rule is not valid."] });
  expect(placeErrors(unreachable(new TypeError("no")), ["name"])).toEqual({
    fields: {},
    rest: ["Tocsin cannot be reached. Check your connection, and whether Tocsin is running."],
  });
});
