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

test("messages that failed are a link to them, in the line and on the System page", async () => {
  const counts = {
    pending: 0,
    retrying: 0,
    delivered: 5,
    failed: 1,
    exhausted: 1,
    discarded: 0,
    suppressed: 0,
    complete: true,
  };
  server.use(
    http.get(api("/status"), () => HttpResponse.json({ ...aStatus(), outbox: { depth: 0, estimated: false } })),
    http.get(api("/notifications/counts"), ({ request }) => {
      expect(new URL(request.url).searchParams.getAll("status")).toEqual(["FAILED", "EXHAUSTED"]);
      return HttpResponse.json(counts);
    }),
    http.get(api("/replicas"), () => HttpResponse.json({ items: [] })),
  );
  open("/system");
  await waitFor(() => expect(screen.getAllByRole("link", { name: "2 messages failed" })).toHaveLength(2));
  for (const link of screen.getAllByRole("link", { name: "2 messages failed" })) {
    expect(link).toHaveAttribute("href", expect.stringMatching(/^\/deliveries\?status=.*failed.*exhausted/));
  }
  expect(screen.queryByText("All messages delivered")).toBeNull();
});
