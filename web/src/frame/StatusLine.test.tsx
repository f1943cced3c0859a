import { screen } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { systemStatus } from "../api/status";
import { api, open, startWorld } from "../test/world";

const { server } = startWorld();

const status = (version: string) => ({
  replicaId: "a",
  version,
  startedAt: "2026-11-21T10:00:00Z",
  now: "2026-11-21T10:00:00Z",
  ready: true,
  dependencies: [],
});

test("a page that runs old code offers to reload, once the server serves other scripts", async () => {
  let version = "1.0";
  let served = "";
  server.use(
    http.get(api("/status"), () => HttpResponse.json(status(version))),
    http.get(`${location.origin}/`, () => HttpResponse.html(`<title>Tocsin</title>${served}`)),
  );
  const { cache } = open("/rules");
  await vi.waitFor(() => expect(cache.getQueryData(systemStatus().queryKey)).toMatchObject({ version: "1.0" }));
  // Another replica is newer, but the page comes from one that is not.
  version = "1.1";
  await cache.refetchQueries({ queryKey: ["status"] });
  await vi.waitFor(() => expect(cache.getQueryState(["outdated", "1.1"])).toMatchObject({ data: false }));
  expect(screen.queryByRole("button", { name: "Reload" })).toBeNull();
  served = '<script src="/assets/new.js"></script>';
  await cache.refetchQueries({ queryKey: ["outdated"] });
  expect(await screen.findByRole("button", { name: "Reload" })).toBeVisible();
  expect(screen.getByRole("status", { name: "Problems" })).toHaveTextContent("Tocsin was updated. Reload the page.");
});
