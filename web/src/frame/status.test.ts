import { QueryObserver } from "@tanstack/react-query";
import { delay, http } from "msw";
import { expect, test, vi } from "vitest";
import { createCache } from "../api/cache";
import { isAway } from "../api/errors";
import { systemStatus } from "../api/status";
import { api, startWorld } from "../test/world";
import { facts } from "./facts";

const { server } = startWorld();

test("what hangs does not answer, although no call has failed", async () => {
  const bound = new AbortController();
  const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(bound.signal);
  server.use(http.get(api("/status"), () => delay("infinite")));
  const watching = new QueryObserver(createCache(), systemStatus());
  const end = watching.subscribe(() => {});
  await vi.waitFor(() => expect(timeout).toHaveBeenCalledWith(10_000));
  expect(watching.getCurrentResult().isError).toBe(false);
  bound.abort(new DOMException("The operation timed out.", "TimeoutError"));
  await vi.waitFor(() => expect(isAway(watching.getCurrentResult().error)).toBe(true));
  const { data, isError } = watching.getCurrentResult();
  expect(facts("live", data, !isError)[0]?.text).toMatch(/^Tocsin cannot be reached: /);
  end();
});
