import { expect, test } from "vitest";
import { ApiError, reasonOf } from "./errors";

const cases: [status: number, answer: unknown, said: string][] = [
  [0, undefined, "Tocsin cannot be reached. Check your connection, and whether Tocsin is running."],
  [404, undefined, "Not found. It may have been deleted. Check the URL."],
  [502, "<html>Bad gateway</html>", "Tocsin is not responding. Try again."],
  [504, undefined, "Tocsin is not responding. Try again."],
  [500, undefined, "The request failed with status 500. Try again."],
  [
    500,
    { status: 500, code: "internal", title: "Internal Server Error", requestId: "r1" },
    "The request failed: Internal Server Error. Try again. The request ID in Tocsin's log is r1.",
  ],
  [
    409,
    { status: 409, code: "conflict", detail: "It was done more than 10 minutes ago and can no longer be undone" },
    "It was done more than 10 minutes ago and can no longer be undone. Reload the page to see what has changed, then try again.",
  ],
  [
    409,
    { status: 409, code: "conflict", detail: "The name “Orders” is taken; choose another one" },
    "The name “Orders” is taken; choose another one",
  ],
  [
    412,
    {
      status: 412,
      code: "stale",
      detail: "The teams were changed to version 4 since version 3 was read; read them again and repeat the edit",
    },
    "The teams were changed to version 4 since version 3 was read. Reload the page, then make your change again.",
  ],
  [
    429,
    { status: 429, code: "too_many_requests", detail: "Too many attempts; try again in 30 s" },
    "Too many attempts; try again in 30 s",
  ],
  [
    400,
    {
      status: 400,
      code: "invalid",
      detail: "Invalid format for parameter id: error parsing 'x' as UUID",
      errors: [{ field: "id", code: "type", message: "Cannot be read: error parsing 'x' as UUID" }],
    },
    "Not found. Check the URL.",
  ],
  [429, "slow down", "The request failed with status 429. Wait a minute, then try again."],
];

test.each(cases)("status %i with %j is explained, with the remedy", (status, answer, said) => {
  expect(reasonOf(new ApiError(status, answer))).toBe(said);
});

test("a refusal names each field and what is wrong with it, for it says no more itself", () => {
  const errors = [
    { field: "until", code: "out_of_range", message: "Must be in the future" },
    { field: "filter.errorTypes[1]", code: "too_long", message: "At most 200 bytes" },
  ];
  const error = new ApiError(400, { status: 400, code: "invalid", detail: "The snooze is not valid", errors });
  expect(reasonOf(error)).toBe("Until: Must be in the future. Filter, error types 2: At most 200 bytes");
});
