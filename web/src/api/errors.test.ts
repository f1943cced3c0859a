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
];

test.each(cases)("status %i with %j is explained, with the remedy", (status, answer, said) => {
  expect(reasonOf(new ApiError(status, answer))).toBe(said);
});
