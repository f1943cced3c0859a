import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { systemStatus } from "../api/status";
import { api, aStatus, open, startWorld } from "../test/world";

const { server } = startWorld();

test("a page that runs old code offers to reload, once the server serves other scripts", async () => {
  let version = "1.0";
  let served = "";
  server.use(
    http.get(api("/status"), () => HttpResponse.json(aStatus(version))),
    http.get(`${location.origin}/`, () => HttpResponse.html(`<title>Tocsin</title>${served}`)),
  );
  const { cache } = open("/rules");
  await waitFor(() => expect(cache.getQueryData(systemStatus().queryKey)).toMatchObject({ version: "1.0" }));
  // Another replica is newer, but the page comes from one that is not.
  version = "1.1";
  await cache.refetchQueries({ queryKey: ["status"] });
  await waitFor(() => expect(cache.getQueryState(["outdated", "1.1"])).toMatchObject({ data: false }));
  expect(screen.queryByRole("button", { name: "Reload" })).toBeNull();
  served = '<script src="/assets/new.js"></script>';
  await cache.refetchQueries({ queryKey: ["outdated"] });
  expect(await screen.findByRole("button", { name: "Reload" })).toBeVisible();
  expect(screen.getByRole("status", { name: "Problems" })).toHaveTextContent(
    "Tocsin has been updated. Reload the page.",
  );
});
