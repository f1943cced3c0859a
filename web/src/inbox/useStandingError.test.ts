import { act, renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { useStandingError } from "./useStandingError";

const failure = new Error("no");
type Query = Parameters<typeof useStandingError>[0];
const asking: Query = { data: undefined, error: null };
const failed: Query = { data: undefined, error: failure };

test("an error stands while the same is asked again, until an answer comes or something else is asked", () => {
  const { result, rerender } = renderHook(({ query, key }) => useStandingError(query, key), {
    initialProps: { query: asking, key: "a" },
  });
  expect(result.current.error).toBeUndefined();
  rerender({ query: failed, key: "a" });
  rerender({ query: asking, key: "a" });
  expect(result.current.error).toBe(failure);
  rerender({ query: { data: [], error: null }, key: "a" });
  expect(result.current.error).toBeUndefined();
  rerender({ query: asking, key: "b" });
  expect(result.current.error).toBeUndefined();
});

test("a reader who tries again sees that something is tried", () => {
  const { result, rerender } = renderHook((query: Query) => useStandingError(query, "a"), { initialProps: failed });
  rerender(asking);
  act(() => result.current.forget());
  expect(result.current.error).toBeUndefined();
});
