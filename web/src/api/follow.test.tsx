import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { anAlert, api, countsOf, open, startWorld, streams } from "../test/world";

const { server, world } = startWorld();

const rows = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link");

test("a page that is notified which alerts changed reads only those", async () => {
  world.alerts = [anAlert(5, { route: "a" }), anAlert(6, { route: "b" })];
  const asked: string[][] = [];
  server.use(
    http.get(api("/alerts"), ({ request }) => {
      const query = new URL(request.url).searchParams;
      const ids = query.getAll("id");
      asked.push(ids);
      const items = world.alerts.filter(
        ({ id, state }) => query.getAll("state").includes(state) && (ids.length === 0 || ids.includes(id)),
      );
      return HttpResponse.json({ items, asOf: new Date().toISOString() });
    }),
  );
  open("/inbox?fold=none");
  await waitFor(() => expect(rows()).toHaveLength(2));
  // The first event of a stream names no alerts: everything is read.
  streams.at(-1)?.tell(countsOf(world.alerts));
  await waitFor(() => expect(asked).toEqual([[], []]));

  const [a, b] = world.alerts;
  const c = anAlert(0, { route: "c" });
  if (a) a.state = "RESOLVED";
  world.alerts = [c, ...world.alerts];
  streams.at(-1)?.tell(countsOf(world.alerts), [a?.id ?? "", c.id]);
  await waitFor(() => expect(asked).toHaveLength(3));
  expect(asked[2]?.sort()).toEqual([a?.id, c.id].sort());
  await waitFor(() => expect(rows().map((row) => row.getAttribute("data-alert"))).toEqual([c.id, b?.id]));
});

test("a row whose message is not delivered yet is read again until it is", async () => {
  const alert = anAlert(5, { delivery: { total: 1, delivered: 0, retrying: 0, failed: 0, suppressed: 0 } });
  world.alerts = [alert];
  open("/inbox?fold=none");
  await screen.findByText("0/1");
  streams.at(-1)?.onopen?.();
  streams.at(-1)?.tell(countsOf(world.alerts));
  alert.delivery = { total: 1, delivered: 1, retrying: 0, failed: 0, suppressed: 0 };
  await screen.findByText("1/1");
});
