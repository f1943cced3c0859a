import type { InfiniteData } from "@tanstack/react-query";
import { QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { alertGroups, alertKeys, alertList } from "../api/alerts";
import { createCache } from "../api/cache";
import type { Alert, AlertGroup, AlertGroupPage, AlertPage } from "../api/client";
import { anAlert, countsOf, issuesOf, problem } from "../test/world";
import { useAlertAction } from "./actions";
import { toFilter } from "./filter";

const filter = toFilter({});
const list = alertList(filter).queryKey;
const groups = alertGroups(filter, "issue").queryKey;

/** An inbox of three alerts, in a cache that nothing refreshes, and the refusals of its actions in their order. */
function inbox() {
  const alerts = ["a", "b", "c"].map((route, at) => anAlert(5 + at, { route }));
  const cache = createCache();
  const page = <T,>(items: T[]) => ({ pages: [{ items, asOf: "" }], pageParams: [""] });
  cache.setQueryData<InfiniteData<AlertPage>>(list, page<Alert>(alerts));
  cache.setQueryData<InfiniteData<AlertGroupPage>>(groups, page<AlertGroup>(issuesOf(alerts)));
  cache.setQueryData(alertKeys.counts, countsOf(alerts));
  const refusals: (() => void)[] = [];
  vi.stubGlobal("fetch", async () => {
    await new Promise<void>((resolve) => refusals.push(resolve));
    return problem(403, { code: "forbidden" });
  });
  const { result } = renderHook(useAlertAction, {
    wrapper: ({ children }) => <QueryClientProvider client={cache}>{children}</QueryClientProvider>,
  });
  const acknowledge = async (at: number) => {
    const alert = alerts[at] as Alert;
    await act(async () => result.current.mutate({ alert, to: "ACKNOWLEDGED" }));
    await waitFor(() => expect(cache.getQueryData<Alert>(alertKeys.one(alert.id))?.state).toBe("ACKNOWLEDGED"));
  };
  /** Refuses one of the actions in their order, which is that on the alert `at`. */
  const refuse = async (action: number, at = action) => {
    await waitFor(() => expect(refusals.length).toBeGreaterThan(action));
    await act(async () => refusals[action]?.());
    await waitFor(() => expect(cache.getQueryData<Alert>(alertKeys.one(alerts[at]?.id ?? ""))?.state).toBe("FIRING"));
  };
  const shown = () => {
    const listed = cache.getQueryData<InfiniteData<AlertPage>>(list)?.pages[0]?.items ?? [];
    const folded = cache.getQueryData<InfiniteData<AlertGroupPage>>(groups)?.pages[0]?.items ?? [];
    return {
      listed: listed.map(({ exchange }) => exchange?.route).join(""),
      folded: folded.map(({ route }) => route).join(""),
      firing: cache.getQueryData<ReturnType<typeof countsOf>>(alertKeys.counts)?.firing,
    };
  };
  return { cache, acknowledge, refuse, shown };
}

test("a refused action puts back its own alert, and leaves that of another action", async () => {
  const { acknowledge, refuse, shown } = inbox();
  await acknowledge(0);
  await acknowledge(1);
  expect(shown()).toEqual({ listed: "c", folded: "c", firing: 1 });
  await refuse(0);
  expect(shown()).toEqual({ listed: "ac", folded: "ac", firing: 2 });
  await refuse(1);
  expect(shown()).toEqual({ listed: "abc", folded: "abc", firing: 3 });
});

test("what came in during an action that is refused stays", async () => {
  const { cache, acknowledge, refuse, shown } = inbox();
  await acknowledge(1);
  const newest = anAlert(0, { route: "n" });
  cache.setQueryData<InfiniteData<AlertPage>>(list, (now) => {
    const [first] = now?.pages ?? [];
    return now && first && { ...now, pages: [{ ...first, items: [newest, ...first.items] }] };
  });
  await refuse(0, 1);
  expect(shown().listed).toBe("nabc");
});
