import { renderHook } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { useNow } from "./now";

afterEach(() => void vi.useRealTimers());

test("the present is that of whoever looks, also after a time in which nobody did", () => {
  vi.useFakeTimers();
  renderHook(() => useNow()).unmount();
  vi.setSystemTime(Date.now() + 3_600_000);
  const { result } = renderHook(() => useNow());
  expect(result.current).toBe(Date.now());
});
