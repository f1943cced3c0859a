import type { InfiniteData } from "@tanstack/react-query";
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { rowHeight } from "../inbox/RowParts";
import { anAlert, anIssue, api, aStatus, countsOf, issuesOf, open, problem, startWorld, streams } from "../test/world";
import { alertKeys } from "./alerts";
import { pollMs } from "./live";

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

test("pages of groups far below the view are not read again", async () => {
  const size = 30;
  world.alerts = Array.from({ length: 10 * size }, (_, at) => anAlert(5 + at, { route: `r${at}.` }));
  const asked: number[] = [];
  server.use(
    http.get(api("/alerts/groups"), ({ request }) => {
      const from = Number(new URL(request.url).searchParams.get("cursor"));
      asked.push(from / size);
      const items = issuesOf(world.alerts.slice(from, from + size)).map((issue) => ({ ...issue, count: 2 }));
      const next = from + size < world.alerts.length ? { nextCursor: String(from + size) } : {};
      return HttpResponse.json({ items, asOf: new Date().toISOString(), ...next });
    }),
  );
  const { user, cache } = open("/inbox");
  await screen.findByText("r0.", { exact: false });
  const scroller = screen.getByRole("list", { name: "Alerts" }).parentElement as HTMLElement;
  const scrollTo = (row: number) => {
    scroller.scrollTop = rowHeight.narrow * row;
    fireEvent.scroll(scroller);
    return screen.findByText(`r${row}.`, { exact: false });
  };
  const refresh = () => {
    asked.length = 0;
    streams.at(-1)?.tell(countsOf(world.alerts));
  };
  await waitFor(() => expect(asked).toEqual([0, 1, 2]));
  await scrollTo(80);
  await waitFor(() => expect(asked).toEqual([0, 1, 2, 3, 4, 5]));
  await scrollTo(0);
  refresh();
  await waitFor(() => expect(asked.length).toBeGreaterThan(2));
  refresh();
  await waitFor(() => expect(asked).toEqual([0, 1, 2]));
  // They are read when they come into view again, and kept while rows are selected.
  asked.length = 0;
  await scrollTo(80);
  await waitFor(() => expect(asked).toEqual([3, 4, 5]));
  await user.click(screen.getAllByRole("checkbox")[0] as HTMLElement);
  await scrollTo(0);
  refresh();
  await waitFor(() => expect(asked).toHaveLength(6));
  await waitFor(() => expect(cache.isFetching({ queryKey: alertKeys.groups })).toBe(0));
  expect(cache.getQueriesData<InfiniteData<unknown>>({ queryKey: alertKeys.groups })[0]?.[1]?.pages).toHaveLength(6);
}, 40_000);

test("a change reads only the changed alerts of an opened group", async () => {
  world.alerts = [anAlert(5), anAlert(60), anAlert(90)];
  const asked: string[][] = [];
  server.use(
    http.get(api("/alerts"), ({ request }) => {
      asked.push(new URL(request.url).searchParams.getAll("id"));
      return undefined;
    }),
  );
  const { user } = open("/inbox");
  await user.click(await screen.findByRole("button", { name: /×3/ }));
  await waitFor(() => expect(rows()).toHaveLength(3 + 1));
  streams.at(-1)?.tell(countsOf(world.alerts));
  await waitFor(() => expect(asked).toEqual([[], []]));
  const [a, b] = world.alerts;
  const c = anAlert(0);
  if (b) b.state = "RESOLVED";
  world.alerts = [c, ...world.alerts];
  streams.at(-1)?.tell(countsOf(world.alerts), [b?.id ?? "", c.id]);
  await waitFor(() => expect(asked).toHaveLength(3));
  expect(asked[2]?.sort()).toEqual([b?.id, c.id].sort());
  await waitFor(() =>
    expect(rows().map((row) => row.getAttribute("data-alert"))).toEqual([c.id, a?.id, world.alerts[3]?.id, null]),
  );
});

test("an issue is read again only if its alerts changed", async () => {
  const mine = anAlert(5, { route: "import" });
  world.alerts = [mine];
  const asked: string[] = [];
  server.use(
    http.get(api("/alerts/issue"), () => {
      asked.push("issue");
      return HttpResponse.json(anIssue({ rules: [] }));
    }),
    http.get(api("/alerts"), ({ request }) => {
      const ids = new URL(request.url).searchParams.getAll("id");
      asked.push(ids.length > 0 ? "changed" : "alerts");
      return undefined;
    }),
  );
  open("/issue?app=orders&route=import&error=java.net.ConnectException");
  await waitFor(() => expect(asked.sort()).toEqual(["alerts", "issue"]));
  const refresh = async (ids: string[] | undefined, ...want: string[]) => {
    asked.length = 0;
    streams.at(-1)?.tell(countsOf(world.alerts), ids);
    await waitFor(() => expect(asked.sort()).toEqual(want), { timeout: 5_000 });
  };
  await refresh(undefined, "alerts", "issue");
  await refresh(["0192f0c1-0000-7000-8000-000000000001"], "changed");
  await refresh([mine.id], "changed", "issue");
}, 20_000);

test("a row whose message is not delivered yet is read again until it is", async () => {
  const alert = anAlert(5, {
    delivery: { total: 1, delivered: 0, retrying: 0, failed: 0, suppressed: 0, discarded: 0 },
  });
  world.alerts = [alert];
  open("/inbox?fold=none");
  await screen.findByText("0/1");
  streams.at(-1)?.beat(15);
  streams.at(-1)?.tell(countsOf(world.alerts));
  alert.delivery = { total: 1, delivered: 1, retrying: 0, failed: 0, suppressed: 0, discarded: 0 };
  await screen.findByText("1/1");
});

test.each([
  ["the inbox", "/inbox", "/alerts/groups"],
  ["a list of each alert", "/inbox?fold=none", "/alerts"],
  ["the page of an issue", "/issue?app=orders&route=import&error=java.net.ConnectException", "/alerts/issue"],
  ["a wall", "/wall", "/alerts/groups"],
])("without a stream, %s is refreshed, and says that it is not live", async (_, address, path) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  world.alerts = [anAlert(5, { route: "import" })];
  let asked = 0;
  server.use(
    http.get(api("/status"), () => HttpResponse.json(aStatus())),
    http.get(api(path), () => {
      asked += 1;
      return undefined;
    }),
    http.get(api("/alerts/issue"), () => HttpResponse.json(anIssue({ rules: [] }))),
  );
  open(address);
  await waitFor(() => expect(asked).toBe(1));
  await screen.findByText("Connecting…");
  vi.advanceTimersByTime(pollMs);
  expect(await screen.findByText("Not live: refreshed every 20 s")).toBeVisible();
  await waitFor(() => expect(asked).toBe(2));
  streams.at(-1)?.beat(15);
  expect(await screen.findByText("Live")).toBeVisible();
});

test.each([
  ["a list", "/inbox?fold=none", "/alerts"],
  ["a list of issues", "/inbox", "/alerts/groups"],
])(
  "%s that could not be refreshed is read again without another event",
  async (_, address, path) => {
    const [old, fresh] = [anAlert(5, { route: "old." }), anAlert(0, { route: "fresh." })];
    world.alerts = [old];
    let failing = 0;
    server.use(
      http.get(api(path), () => {
        if (failing === 0) return undefined;
        failing -= 1;
        return problem(500, { code: "internal" });
      }),
    );
    open(address);
    await screen.findByText("old.", { exact: false });
    streams.at(-1)?.beat(15);
    world.alerts = [fresh, old];
    // The first try, and both of its repetitions.
    failing = 3;
    streams.at(-1)?.tell(countsOf(world.alerts));
    await screen.findByText("fresh.", { exact: false }, { timeout: 20_000 });
  },
  40_000,
);

test("a new alert whose request fails is read again without another event", async () => {
  const [old, fresh] = [anAlert(5, { route: "old." }), anAlert(0, { route: "fresh." })];
  world.alerts = [old];
  let [whole, failed] = [0, 0];
  server.use(
    http.get(api("/alerts"), ({ request }) => {
      const some = new URL(request.url).searchParams.has("id");
      if (!some) whole += 1;
      if (failed > 0 || !some) return undefined;
      failed += 1;
      return problem(500, { code: "internal" });
    }),
  );
  open("/inbox?fold=none");
  await screen.findByText("old.", { exact: false });
  streams.at(-1)?.beat(15);
  streams.at(-1)?.tell(countsOf(world.alerts));
  await waitFor(() => expect(whole).toBe(2));
  world.alerts = [fresh, old];
  streams.at(-1)?.tell(countsOf(world.alerts), [fresh.id]);
  await waitFor(() => expect(failed).toBe(1));
  await screen.findByText("fresh.", { exact: false }, { timeout: 20_000 });
}, 40_000);

test("a list of which all loaded alerts have left goes on with the older ones", async () => {
  const size = 100;
  world.alerts = Array.from({ length: size + 1 }, (_, at) => anAlert(5 + at, { route: `r${at}.` }));
  let whole = 0;
  server.use(
    http.get(api("/alerts"), ({ request }) => {
      const query = new URL(request.url).searchParams;
      const firing = world.alerts.filter(({ state }) => state === "FIRING");
      if (query.has("id")) return HttpResponse.json({ items: [], asOf: new Date().toISOString() });
      whole += 1;
      const next = firing.length > size ? { nextCursor: "older" } : {};
      return HttpResponse.json({ items: firing.slice(0, size), asOf: new Date().toISOString(), ...next });
    }),
  );
  open("/inbox?fold=none");
  await screen.findByText("r0.", { exact: false });
  streams.at(-1)?.beat(15);
  streams.at(-1)?.tell(countsOf(world.alerts));
  const left = world.alerts.slice(0, size);
  await waitFor(() => expect(whole).toBe(2));
  for (const alert of left) alert.state = "ACKNOWLEDGED";
  streams.at(-1)?.tell(
    countsOf(world.alerts),
    left.map(({ id }) => id),
  );
  await screen.findByText(`r${size}.`, { exact: false });
}, 20_000);

test("an alert that was just acknowledged does not come back with an answer from before", async () => {
  const [a, b] = [anAlert(5, { route: "a" }), anAlert(6, { route: "b" })];
  world.alerts = [a, b];
  let [whole, some] = [0, 0];
  const waiting: (() => void)[] = [];
  const later = () => new Promise<void>((resolve) => waiting.push(resolve));
  server.use(
    http.get(api("/alerts"), async ({ request }) => {
      const ids = new URL(request.url).searchParams.getAll("id");
      if (ids.length === 0) whole += 1;
      if (ids.length === 0) return undefined;
      some += 1;
      await later();
      return HttpResponse.json({ items: [a], asOf: a.firedAt });
    }),
    http.post(api("/alerts/acknowledge"), async () => {
      await later();
      return undefined;
    }),
  );
  const { user } = open("/inbox?fold=none");
  await waitFor(() => expect(rows()).toHaveLength(2));
  streams.at(-1)?.beat(15);
  streams.at(-1)?.tell(countsOf(world.alerts));
  await waitFor(() => expect(whole).toBe(2));
  streams.at(-1)?.tell(countsOf(world.alerts), [a.id]);
  await waitFor(() => expect(some).toBe(1));
  await user.keyboard("ja");
  await waitFor(() => expect(rows()).toHaveLength(1));
  await waitFor(() => expect(waiting).toHaveLength(2));
  waiting[0]?.();
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(rows().map((row) => row.getAttribute("data-alert"))).toEqual([b.id]);
  waiting[1]?.();
  await screen.findByText("orders · a acknowledged.");
});
