import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { throttle } from "./throttle";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("the first call runs at once, many more are one after the gap", async () => {
  const action = vi.fn(async () => {});
  const call = throttle(action, () => 1_000);
  call();
  expect(action).toHaveBeenCalledTimes(1);
  call();
  call();
  await vi.advanceTimersByTimeAsync(999);
  expect(action).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(action).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(action).toHaveBeenCalledTimes(2);
});

test("a run that lasts longer than the gap is not overtaken, and the next waits a gap after it, also when it failed", async () => {
  let fail: (reason: Error) => void = () => {};
  const action = vi.fn(() => new Promise<void>((_, reject) => (fail = reject)));
  const call = throttle(action, () => 10);
  call();
  call();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(action).toHaveBeenCalledTimes(1);
  fail(new Error("no"));
  await vi.advanceTimersByTimeAsync(9);
  expect(action).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(action).toHaveBeenCalledTimes(2);
});
