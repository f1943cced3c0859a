import { act, screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { anAlert, api, open, startWorld } from "../test/world";
import type { Notification } from "./client";
import { pollMs } from "./notifications";
import { ruleKeys } from "./rules";

const { server, world } = startWorld();

test("a list of deliveries is refreshed however long it is, at no more calls in a time", () => {
  const page = (status: Notification["status"]) => ({ items: [{ status } as Notification] });
  const pages = (count: number, status: Notification["status"]) => Array.from({ length: count }, () => page(status));
  expect([1, 3, 6, 30].map((count) => pollMs(pages(count, "DELIVERED")))).toEqual([10_000, 10_000, 20_000, 100_000]);
  expect([1, 3, 6, 30].map((count) => pollMs(pages(count, "RETRYING")))).toEqual([2_000, 2_000, 4_000, 20_000]);
});

test("rules are read again when the status says that one fails, and not with each status or short backfill", async () => {
  let failing = 0;
  let backfilling = 0;
  let read = 0;
  server.use(
    http.get(api("/status"), () =>
      HttpResponse.json({
        ...{ replicaId: "a", version: "1", startedAt: "2026-11-21T10:00:00Z", now: "2026-11-21T10:00:00Z" },
        ...{ ready: true, dependencies: [], rules: { total: 1, enabled: 1, failing, backfilling } },
      }),
    ),
    http.get(api("/rules"), () => {
      read += 1;
      return HttpResponse.json({ items: [] });
    }),
  );
  const { cache } = open("/rules");
  await screen.findByRole("heading", { name: /No rule/ });
  const again = () => cache.refetchQueries({ queryKey: ["status"] });
  await again();
  await again();
  expect(read).toBe(1);
  for (backfilling of [1, 0]) {
    await act(again);
    await waitFor(() => expect(cache.isFetching({ queryKey: ruleKeys.all })).toBe(0));
    expect(read).toBe(1);
  }
  failing = 1;
  await again();
  await waitFor(() => expect(read).toBe(2));
});

test("the inbox reads the names of rules only when somebody chooses one, or has chosen one", async () => {
  let read = 0;
  server.use(
    http.get(api("/rules/names"), () => {
      read += 1;
      return HttpResponse.json({ items: [{ id: "r1", name: "Failed orders", enabled: true }] });
    }),
  );
  world.alerts = [anAlert(5)];
  const { user } = open("/inbox?fold=none");
  await screen.findByRole("list", { name: "Alerts" });
  expect(read).toBe(0);
  await user.click(screen.getByRole("button", { name: "Rule" }));
  await user.click(await screen.findByRole("option", { name: "Failed orders" }));
  expect(await screen.findByRole("button", { name: "Rule: Failed orders" })).toBeVisible();
  expect(read).toBe(1);
});
