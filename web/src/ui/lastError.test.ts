import { renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { useLastError } from "./lastError";

const failure = new Error("no");
type Query = Parameters<typeof useLastError>[0];
const asking: Query = { data: undefined, error: null };
const failed: Query = { data: undefined, error: failure };

test("an error stays while the same is asked again, until an answer comes or something else is asked", () => {
  const { result, rerender } = renderHook(({ query, key }) => useLastError(query, key), {
    initialProps: { query: asking, key: "a" },
  });
  expect(result.current).toBeNull();
  rerender({ query: failed, key: "a" });
  rerender({ query: asking, key: "a" });
  expect(result.current).toBe(failure);
  rerender({ query: { data: [], error: null }, key: "a" });
  expect(result.current).toBeNull();
  rerender({ query: failed, key: "a" });
  rerender({ query: asking, key: "b" });
  expect(result.current).toBeNull();
});
