import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { systemStatus } from "../api/status";
import { anAlert, api, issuesOf, open, startWorld } from "../test/world";

const { server, world } = startWorld();

test("a wall shows what fires, without the rail", async () => {
  world.alerts = [anAlert(5, { route: "import" }), anAlert(60, { route: "import" }), anAlert(90, { route: "export" })];
  open("/wall");
  const lines = await screen.findAllByRole("listitem");
  expect(lines).toHaveLength(2);
  expect(lines[0]).toHaveTextContent(/orders · import.*×2/);
  expect(
    within(lines[0] as HTMLElement)
      .getByRole("link")
      .getAttribute("href"),
  ).toMatch(/^\/issue\?/);
  expect(screen.queryByRole("navigation")).toBeNull();
  expect(screen.getByRole("heading", { level: 1, name: "Firing alerts" })).toBeInTheDocument();
});

test("a calm wall says so", async () => {
  open("/wall");
  expect(await screen.findByText("Nothing is firing")).toBeVisible();
});

test("a wall loads a new version by itself", async () => {
  const reload = vi.spyOn(globalThis.location, "reload").mockImplementation(() => {});
  let version = "1.0";
  server.use(
    http.get(api("/status"), () => HttpResponse.json({ version, now: "2026-11-21T10:00:00Z", dependencies: [] })),
    http.get(`${location.origin}/`, () => HttpResponse.html('<title>Tocsin</title><script src="/new.js"></script>')),
  );
  const { cache } = open("/wall");
  await screen.findByText("Nothing is firing");
  await vi.waitFor(() => expect(cache.getQueryData(systemStatus().queryKey)).toMatchObject({ version: "1.0" }));
  expect(reload).not.toHaveBeenCalled();
  version = "1.1";
  await cache.refetchQueries({ queryKey: ["status"] });
  await vi.waitFor(() => expect(reload).toHaveBeenCalledOnce());
});

test("a wall reads only the issues that it has room for", async () => {
  world.alerts = Array.from({ length: 20 }, (_, at) => anAlert(5 + at, { route: `r${at}.` }));
  const asked: URLSearchParams[] = [];
  server.use(
    http.get(api("/alerts/groups"), ({ request }) => {
      const query = new URL(request.url).searchParams;
      asked.push(query);
      const items = issuesOf(world.alerts).slice(0, Number(query.get("limit")));
      return HttpResponse.json({ items, asOf: new Date().toISOString(), nextCursor: "c" });
    }),
  );
  open("/wall");
  expect(await screen.findAllByRole("listitem")).toHaveLength(12);
  expect(screen.getByText("and more issues")).toBeVisible();
  expect(asked.map((query) => [query.get("limit"), query.get("deliveries")])).toEqual([["12", null]]);
});
