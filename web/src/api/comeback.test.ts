import { QueryObserver } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";
import { createCache } from "./cache";
import { isKnownAway, onComeback } from "./comeback";
import { ApiError, unreachable } from "./errors";

/** A page that requests these; `answer` decides each answer. */
function aPage(answer: (key: string) => unknown, ...keys: string[]) {
  const cache = createCache();
  const asked: string[] = [];
  const back = vi.fn();
  onComeback(cache, back);
  const observers = keys.map((key) => {
    const queryFn = async () => {
      asked.push(key);
      const said = answer(key);
      if (said instanceof Error) throw said;
      return said;
    };
    return new QueryObserver(cache, { queryKey: [key], queryFn, retry: false, staleTime: Number.POSITIVE_INFINITY });
  });
  for (const observer of observers) observer.subscribe(() => {});
  const ask = (key: string) => cache.refetchQueries({ queryKey: [key] });
  return { cache, asked, back, ask };
}

test("what could not be read is asked again as soon as anything is answered, and nothing else is", async () => {
  let gone = true;
  const page = aPage((key) => (gone ? unreachable(key) : key), "status", "rule", "users");
  page.cache.setQueryData(["users"], "known");
  await vi.waitFor(() => expect(page.cache.getQueryState(["rule"])?.status).toBe("error"));
  page.cache.setQueryData(["users"], "known");
  expect([isKnownAway(page.cache), page.back.mock.calls.length]).toEqual([true, 0]);
  page.asked.length = 0;
  gone = false;
  await page.ask("status");
  await vi.waitFor(() => expect(page.cache.getQueryData(["rule"])).toBe("rule"));
  expect(page.asked).toEqual(["status", "rule"]);
  expect(isKnownAway(page.cache)).toBe(false);
  expect(page.back).toHaveBeenCalledTimes(1);
  await page.ask("status");
  expect(page.back).toHaveBeenCalledTimes(1);
});

test("a refusal is an answer, and the pages of a list are not all asked again", async () => {
  const refusal = new ApiError(403, undefined);
  const refused = aPage((key) => (key === "rule" ? refusal : key), "rule", "status");
  await vi.waitFor(() => expect(refused.cache.getQueryData(["status"])).toBe("status"));
  expect(refused.back).not.toHaveBeenCalled();

  let gone = true;
  const paged = aPage((key) => (gone ? unreachable(key) : key), "status", "list");
  paged.cache.setQueryData(["list"], { pages: [], pageParams: [] });
  await paged.ask("list");
  await vi.waitFor(() => expect(isKnownAway(paged.cache)).toBe(true));
  gone = false;
  paged.asked.length = 0;
  await paged.ask("status");
  expect([paged.asked, paged.back.mock.calls.length]).toEqual([["status"], 1]);
});

test("what a database's outage left unread is asked again when Tocsin says that it reaches all", async () => {
  let ready = false;
  const lame = new ApiError(503, undefined);
  const page = aPage((key) => (key === "status" ? { ready } : ready ? key : lame), "status", "preview");
  await vi.waitFor(() => expect(page.cache.getQueryState(["preview"])?.status).toBe("error"));
  page.asked.length = 0;
  await page.ask("status");
  expect([page.asked, page.back.mock.calls.length]).toEqual([["status"], 0]);
  ready = true;
  await page.ask("status");
  await vi.waitFor(() => expect(page.cache.getQueryData(["preview"])).toBe("preview"));
  expect([page.asked, page.back.mock.calls.length]).toEqual([["status", "status", "preview"], 1]);
  await page.ask("status");
  expect(page.back).toHaveBeenCalledTimes(1);
});

test("a refusal while Tocsin reaches all is not asked again and again", async () => {
  const slow = new ApiError(503, undefined);
  const page = aPage((key) => (key === "status" ? { ready: true } : slow), "status", "preview");
  await vi.waitFor(() => expect(page.cache.getQueryState(["preview"])?.status).toBe("error"));
  page.asked.length = 0;
  await page.ask("status");
  expect([page.asked, page.back.mock.calls.length]).toEqual([["status"], 0]);
});

test("what says so of itself is asked again after an outage, although it was read", async () => {
  let gone = true;
  const page = aPage((key) => (gone ? unreachable(key) : key), "status");
  const queryFn = vi.fn(async () => "read");
  const preview = { queryKey: ["preview"], queryFn, meta: { afterOutage: true }, staleTime: Number.POSITIVE_INFINITY };
  const watching = new QueryObserver(page.cache, preview).subscribe(() => {});
  await vi.waitFor(() => expect(page.cache.getQueryState(["preview"])?.status).toBe("success"));
  await page.ask("status");
  gone = false;
  await page.ask("status");
  await vi.waitFor(() => expect(queryFn).toHaveBeenCalledTimes(2));
  await page.ask("status");
  expect(queryFn).toHaveBeenCalledTimes(2);
  watching();
});
