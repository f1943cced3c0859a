import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, render } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { alertKeys } from "../api/alerts";
import { notifications, quietMs } from "../ui/announce";
import { useAnnouncements } from "./useAnnouncements";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  notifications.set("off");
});

test("a browser that refuses to show a notification, as on Android, does not break the page", () => {
  vi.stubGlobal(
    "Notification",
    class {
      static permission = "granted";
      constructor() {
        throw new TypeError("Illegal constructor");
      }
    },
  );
  notifications.set("on");
  const cache = new QueryClient({ defaultOptions: { queries: { enabled: false } } });
  cache.setQueryData(alertKeys.counts, { firing: 0, acknowledged: 0, resolved: 0, pending: 0 });
  const { container } = render(
    <QueryClientProvider client={cache}>
      <Listening />
      Inbox
    </QueryClientProvider>,
  );
  vi.useFakeTimers();
  act(() => {
    cache.setQueryData(alertKeys.counts, { firing: 1, acknowledged: 0, resolved: 0, pending: 0 });
    vi.advanceTimersByTime(100);
  });
  expect(container).toHaveTextContent("Inbox");
});

function Listening() {
  useAnnouncements();
  return null;
}

test("the last alert of a burst is announced, too, though nothing comes after it", () => {
  vi.useFakeTimers();
  const announced: string[] = [];
  vi.stubGlobal(
    "Notification",
    class {
      static permission = "granted";
      constructor(_title: string, { body }: { body: string }) {
        announced.push(body);
      }
    },
  );
  notifications.set("on");
  const cache = new QueryClient({ defaultOptions: { queries: { enabled: false } } });
  const fires = (firing: number) =>
    act(() => {
      cache.setQueryData(alertKeys.counts, { firing, acknowledged: 0, resolved: 0, pending: 0 });
      // The cache reports changes in a timer.
      vi.advanceTimersByTime(100);
    });
  fires(0);
  render(
    <QueryClientProvider client={cache}>
      <Listening />
    </QueryClientProvider>,
  );
  fires(1);
  fires(2);
  expect(announced).toEqual(["1 new alert, 1 alert firing"]);
  act(() => void vi.advanceTimersByTime(quietMs));
  expect(announced).toEqual(["1 new alert, 1 alert firing", "1 new alert, 2 alerts firing"]);
});
