import { QueryClientProvider } from "@tanstack/react-query";
import { renderHook } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { createCache } from "../api/cache";
import { aRule } from "../test/rules";
import { useDuplicate } from "./useDuplicate";

test.each([
  ["is led to it", true],
  ["who has left is not led to it", false],
])("a copy is made, and the reader %s", async (_, stays) => {
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  vi.stubGlobal("fetch", async () => {
    await answered;
    return Response.json(aRule(), { status: 201 });
  });
  const cache = createCache();
  const onCopied = vi.fn();
  const { result, unmount } = renderHook(() => useDuplicate(onCopied), {
    wrapper: ({ children }) => <QueryClientProvider client={cache}>{children}</QueryClientProvider>,
  });
  result.current.mutate(aRule());
  await vi.waitFor(() => expect(cache.isMutating()).toBe(1));
  if (!stays) unmount();
  answer();
  await vi.waitFor(() => expect(cache.isMutating()).toBe(0));
  expect(onCopied).toHaveBeenCalledTimes(stays ? 1 : 0);
});
