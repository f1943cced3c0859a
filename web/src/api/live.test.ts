import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FakeStream, streams } from "../test/world";
import { Live } from "./live";

function follow() {
  const onAlerts = vi.fn();
  // Without randomness, every delay has its maximum.
  const live = new Live({ onAlerts, open: (url) => new FakeStream(url) as unknown as EventSource, random: () => 0 });
  return { live, onAlerts };
}

describe("Live", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    streams.length = 0;
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("tells of each event, and of one that it cannot read", () => {
    const { live, onAlerts } = follow();
    live.start();
    expect(live.current()).toBe("connecting");
    streams[0]?.beat(15);
    expect(live.current()).toBe("live");
    streams[0]?.tell({ pending: 0, firing: 1, acknowledged: 2, resolved: 3 }, ["a1"]);
    expect(onAlerts).toHaveBeenLastCalledWith({ pending: 0, firing: 1, acknowledged: 2, resolved: 3 }, ["a1"]);
    streams[0]?.dispatchEvent(new MessageEvent("alerts", { data: "{" }));
    expect(onAlerts).toHaveBeenLastCalledWith(undefined, undefined);
  });

  test("waits twice as long after each failure, up to half a minute, and starts over once it was live", () => {
    const { live } = follow();
    live.start();
    for (const delay of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      const before = streams.length;
      streams.at(-1)?.onerror?.();
      expect(["reconnecting", "polling"]).toContain(live.current());
      expect(streams.at(-1)?.closed).toBe(true);
      vi.advanceTimersByTime(delay - 1);
      expect(streams).toHaveLength(before);
      vi.advanceTimersByTime(1);
      expect(streams).toHaveLength(before + 1);
    }
    streams.at(-1)?.beat(15);
    streams.at(-1)?.onerror?.();
    const before = streams.length;
    vi.advanceTimersByTime(500);
    expect(streams).toHaveLength(before + 1);
  });

  test("a nudge ends the wait, and is nothing while the stream lives", () => {
    const { live } = follow();
    live.start();
    streams[0]?.beat(15);
    live.nudge();
    expect(streams).toHaveLength(1);
    streams[0]?.onerror?.();
    live.nudge();
    expect(streams).toHaveLength(2);
    streams[1]?.beat(60);
    vi.advanceTimersByTime(60_000);
    expect(streams).toHaveLength(2);
  });

  test("gives up a stream that is silent for longer than its beats allow", () => {
    const { live } = follow();
    live.start();
    streams[0]?.beat(15);
    vi.advanceTimersByTime(30_000);
    streams[0]?.tell({ pending: 0, firing: 1, acknowledged: 0, resolved: 0 });
    vi.advanceTimersByTime(30_000);
    streams[0]?.beat(15);
    vi.advanceTimersByTime(37_499);
    expect(live.current()).toBe("live");
    vi.advanceTimersByTime(1);
    expect(live.current()).toBe("reconnecting");
    expect(streams[0]?.closed).toBe(true);
    vi.advanceTimersByTime(500);
    expect(streams).toHaveLength(2);
    streams[1]?.beat(15);
    expect(live.current()).toBe("live");
  });

  test.each([undefined, "{", '{"intervalSeconds":0}'])("believes a stream whose beat is %j until it ends", (data) => {
    const { live } = follow();
    live.start();
    streams[0]?.tell({ pending: 0, firing: 1, acknowledged: 0, resolved: 0 });
    if (data !== undefined) streams[0]?.dispatchEvent(new MessageEvent("beat", { data }));
    vi.advanceTimersByTime(3_600_000);
    expect([live.current(), streams.length]).toEqual(["live", 1]);
  });

  test("gives up a stream that brings nothing, and what it had to bring is forgotten when it is stopped", () => {
    const { live } = follow();
    live.start();
    vi.advanceTimersByTime(29_999);
    expect(streams[0]?.closed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(streams[0]?.closed).toBe(true);
    vi.advanceTimersByTime(500);
    expect(streams).toHaveLength(2);
    streams[1]?.beat(15);
    live.stop();
    vi.advanceTimersByTime(60_000);
    expect([live.current(), streams.length]).toEqual(["paused", 2]);
  });

  test("without a stream, says at an interval that anything may have changed, until one lives", () => {
    const { live, onAlerts } = follow();
    live.start();
    streams[0]?.beat(15);
    streams[0]?.onerror?.();
    vi.advanceTimersByTime(19_999);
    expect([live.current(), onAlerts.mock.calls]).toEqual(["reconnecting", []]);
    vi.advanceTimersByTime(1);
    streams.at(-1)?.onerror?.();
    vi.advanceTimersByTime(20_000);
    expect([live.current(), onAlerts.mock.calls]).toEqual([
      "polling",
      [
        [undefined, undefined],
        [undefined, undefined],
      ],
    ]);
    // A person who comes back to the page waits no longer.
    const before = streams.length;
    streams.at(-1)?.onerror?.();
    live.nudge();
    expect(streams).toHaveLength(before + 1);
    streams.at(-1)?.beat(15);
    expect(live.current()).toBe("live");
    vi.advanceTimersByTime(30_000);
    expect(onAlerts).toHaveBeenCalledTimes(2);
    live.stop();
    vi.advanceTimersByTime(60_000);
    expect(onAlerts).toHaveBeenCalledTimes(2);
  });

  test("stopping leaves nothing behind, and can be taken back", () => {
    const { live } = follow();
    const heard = vi.fn();
    live.subscribe(heard);
    live.start();
    streams[0]?.onerror?.();
    live.stop();
    vi.advanceTimersByTime(60_000);
    expect(streams).toHaveLength(1);
    expect(live.current()).toBe("paused");
    live.start();
    expect(streams).toHaveLength(2);
    expect(heard).toHaveBeenCalledTimes(4);
  });
});
