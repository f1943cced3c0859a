import { act, render, renderHook, screen } from "@testing-library/react";
import { Profiler } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { Ago } from "./Instant";
import { useNow } from "./now";

afterEach(() => void vi.useRealTimers());

test("the current time is right also after a time without readers", () => {
  vi.useFakeTimers();
  renderHook(() => useNow()).unmount();
  vi.setSystemTime(Date.now() + 3_600_000);
  const { result } = renderHook(() => useNow());
  expect(result.current).toBe(Date.now());
});

test("a relative time renders again only when its text changes", () => {
  vi.useFakeTimers();
  const at = new Date(Date.now() - 10 * 60_000).toISOString();
  const rendered = vi.fn();
  render(
    <Profiler id="times" onRender={rendered}>
      {[1, 2, 3].map((n) => (
        <Ago key={n} at={at} />
      ))}
    </Profiler>,
  );
  expect(screen.getAllByText("10 min ago")).toHaveLength(3);
  rendered.mockClear();
  act(() => void vi.advanceTimersByTime(50_000));
  expect(rendered).not.toHaveBeenCalled();
  act(() => void vi.advanceTimersByTime(11_000));
  expect(screen.getAllByText("11 min ago")).toHaveLength(3);
  expect(rendered).toHaveBeenCalledTimes(1);
});

test("the seconds of a relative time go by in steps of five", () => {
  vi.useFakeTimers();
  const rendered = vi.fn();
  render(
    <Profiler id="times" onRender={rendered}>
      <Ago at={new Date(Date.now() - 10_000).toISOString()} />
    </Profiler>,
  );
  expect(screen.getByText("10 s ago")).toBeInTheDocument();
  rendered.mockClear();
  act(() => void vi.advanceTimersByTime(4_000));
  expect(rendered).not.toHaveBeenCalled();
  act(() => void vi.advanceTimersByTime(2_000));
  expect(screen.getByText("15 s ago")).toBeInTheDocument();
});
