import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { Me } from "../api/access";
import type { AlertSelection, View, ViewDefinition } from "../api/client";
import { anAlert, api, countsOf, issuesOf, open, problem, startWorld, streams } from "../test/world";

const { server, world } = startWorld();

const list = () => within(screen.getByRole("list", { name: "Alerts" }));

test("alerts are folded by issue, and acting on one reaches no alert of another place", async () => {
  world.alerts = [anAlert(5, { route: "import" }), anAlert(60, { route: "import" }), anAlert(90, { route: "export" })];
  const asked: AlertSelection[] = [];
  server.use(
    http.post(api("/alerts/acknowledge"), async ({ request }) => {
      const selection = (await request.json()) as AlertSelection;
      asked.push(selection);
      const undoableUntil = new Date(Date.now() + 600_000).toISOString();
      const none = { already: 0, refused: 0, unknown: 0 };
      return HttpResponse.json({ actionId: selection.actionId, changed: 2, ...none, undoableUntil });
    }),
  );
  const { user } = open("/inbox");
  const issue = await screen.findByRole("button", { name: /orders · import.*×2/ });
  expect(list().getAllByRole("link")).toHaveLength(1);
  await user.click(issue);
  await list().findByRole("link", { name: "Open issue" });
  expect(list().getAllByRole("link")).toHaveLength(3 + 1);
  await user.keyboard("a");
  await screen.findByText("2 alerts acknowledged.");
  expect(asked).toMatchObject([
    {
      filter: {
        application: ["orders"],
        route: ["import"],
        signature: ["java.net.ConnectException"],
        state: ["FIRING"],
      },
    },
  ]);
});

test("a folded row has the highest severity of its alerts, by which issues are ordered", async () => {
  world.alerts = [anAlert(5, { severity: "WARNING" }), anAlert(60, { severity: "CRITICAL" })];
  open("/inbox");
  const issue = await screen.findByRole("button", { name: /×2/ });
  expect(within(issue).getByText("CRIT")).toBeVisible();
});

test("a folded row shows the deliveries of all its alerts, and is read again until they are delivered", async () => {
  const state = { total: 1, delivered: 1, retrying: 0, failed: 0, suppressed: 0, discarded: 0 };
  world.alerts = [
    anAlert(5, { route: "import", delivery: state }),
    anAlert(60, { route: "import", delivery: { ...state, delivered: 0, failed: 1 } }),
    anAlert(90, { route: "export", delivery: state }),
    anAlert(95, { route: "export", delivery: { ...state, delivered: 0 } }),
  ];
  let asked = 0;
  server.use(
    http.get(api("/alerts/groups"), () => {
      asked += 1;
      return undefined;
    }),
  );
  open("/inbox");
  const issue = await screen.findByRole("button", { name: /import.*×2/ });
  expect(issue).toHaveTextContent("1 of 2 failed permanently, 1 of 2 messages delivered");
  const other = screen.getByRole("button", { name: /export.*×2/ });
  expect(other).toHaveTextContent("1 of 2 messages delivered");
  streams.at(-1)?.beat(15);
  streams.at(-1)?.tell(countsOf(world.alerts));
  await waitFor(() => expect(asked).toBe(2));
  // No event announces a delivery.
  if (world.alerts[3]) world.alerts[3].delivery = state;
  await waitFor(() => expect(other).toHaveTextContent("2 of 2 messages delivered"), { timeout: 9_000 });
}, 15_000);

test("a folded row whose alerts are not all counted says which are", async () => {
  world.alerts = [anAlert(5), anAlert(60)];
  const delivery = { total: 5000, delivered: 5000, retrying: 0, failed: 0, suppressed: 0, discarded: 0 };
  const asked: URLSearchParams[] = [];
  server.use(
    http.get(api("/alerts/groups"), ({ request }) => {
      asked.push(new URL(request.url).searchParams);
      const items = issuesOf(world.alerts).map((issue) => ({ ...issue, count: 6000, delivery, deliveryAlerts: 5000 }));
      return HttpResponse.json({ items, asOf: new Date().toISOString() });
    }),
  );
  open("/inbox");
  const issue = await screen.findByRole("button", { name: /×6,000/ });
  expect(issue).toHaveTextContent("The newest 5,000 alerts: 5,000 of 5,000 messages delivered");
  expect(asked[0]?.get("deliveries")).toBe("true");
});

test("folded and single rows say that an alert is the reader's", async () => {
  world.alerts = [
    anAlert(5, { mine: true }),
    anAlert(60, { mine: true }),
    anAlert(90, { route: "export", mine: true }),
    anAlert(120, { route: "archive" }),
  ];
  open("/inbox");
  expect(await screen.findByRole("button", { name: /yours.*×2/ })).toBeVisible();
  expect(list().getByRole("link", { name: /export yours/ })).toBeVisible();
  expect(list().getByRole("link", { name: /archive/ })).not.toHaveAccessibleName(/yours/);
});

test("rows and header say who has acknowledged, when, and how late the alert was", async () => {
  const alert = anAlert(600, {
    state: "ACKNOWLEDGED",
    acknowledgedBy: "bo@example.com",
    acknowledgedAt: new Date(Date.now() - 300_000).toISOString(),
    late: true,
    lateBySeconds: 180,
  });
  world.alerts = [alert];
  const { user } = open("/inbox?state=acknowledged");
  const row = await screen.findByRole("link", { name: /Acknowledged by bo@example\.com 5 min ago/ });
  expect(within(row).getByText("bo")).toBeVisible();
  expect(row).toHaveTextContent("3 min late");
  await user.click(row);
  const detail = await screen.findByRole("article", { name: "Alert" });
  expect(await within(detail).findByText("bo@example.com", { ignore: "option" })).toBeVisible();
  expect(
    await within(detail).findByText(/3 min after the exchange ended; the exchange became visible late/),
  ).toBeVisible();
  await user.click(within(detail).getByRole("button", { name: "Copy the execution ID" }));
  expect(await navigator.clipboard.readText()).toBe(alert.exchange.executionId);
});

test("the open alert of a folded list keeps its row when it is acknowledged", async () => {
  world.alerts = [anAlert(5, { route: "a" }), anAlert(6, { route: "b" }), anAlert(7, { route: "c" })];
  const { user } = open("/inbox");
  await user.click(await screen.findByRole("link", { name: /orders · b/ }));
  await user.click(await screen.findByRole("button", { name: /Acknowledge/ }));
  await waitFor(() => expect(world.alerts[1]?.state).toBe("ACKNOWLEDGED"));
  await waitFor(() => expect(list().getAllByRole("link")[1]).toHaveTextContent("Acknowledged"));
  expect(list().getAllByRole("link")).toHaveLength(3);
});

test("filters that no menu shows are set in a dialog, kept in the address, and removed by their chips", async () => {
  world.alerts = [anAlert(5)];
  const asked: URLSearchParams[] = [];
  server.use(
    http.get(api("/exchanges/facets"), () => HttpResponse.json({ items: [] })),
    http.get(api("/alerts/groups"), ({ request }) => {
      asked.push(new URL(request.url).searchParams);
      return HttpResponse.json({ items: [], asOf: new Date().toISOString() });
    }),
  );
  const { user, router } = open("/inbox");
  await user.click(await screen.findByRole("button", { name: "More filters" }));
  const dialog = await screen.findByRole("dialog", { name: "Filters" });
  await user.type(within(dialog).getByLabelText("Execution ID"), "ID-7");
  await user.selectOptions(within(dialog).getByLabelText("Fired"), "Last 24 hours");
  await user.type(within(dialog).getByLabelText("Attributes"), "region{Enter}");
  await user.click(within(dialog).getByRole("button", { name: "Apply" }));
  expect(await within(dialog).findByText(/“region” must be a key, an equals sign and a value/)).toBeVisible();
  await user.type(within(dialog).getByLabelText("Attributes"), "{Backspace}region=us{Enter}region=eu{Enter}");
  await user.click(within(dialog).getByRole("button", { name: "Apply" }));
  expect(
    await within(dialog).findByText(/not have two values for “region”, because no alert could match/),
  ).toBeVisible();
  await user.type(within(dialog).getByLabelText("Attributes"), "{Backspace}{Backspace}region=eu{Enter}");
  await user.click(within(dialog).getByRole("button", { name: "Apply" }));
  await waitFor(() =>
    expect(router.state.location.search).toEqual({ execution: "ID-7", within: "24h", attr: "region=eu" }),
  );
  await waitFor(() => expect(asked.at(-1)?.get("executionId")).toBe("ID-7"));
  expect(asked.at(-1)?.getAll("attribute")).toEqual(["region=eu"]);
  expect(Date.now() - Date.parse(asked.at(-1)?.get("from") ?? "")).toBeLessThan(25 * 3_600_000);
  await user.click(screen.getByRole("link", { name: /Execution ID-7/ }));
  await waitFor(() => expect(router.state.location.search).toEqual({ within: "24h", attr: "region=eu" }));
});

/** The server's views, which a test may change. */
function viewsOf(...kept: View[]) {
  const saved: ViewDefinition[] = [];
  server.use(
    http.get(api("/views"), () => HttpResponse.json({ items: kept })),
    http.post(api("/views"), async ({ request }) => {
      const definition = (await request.json()) as ViewDefinition;
      saved.push(definition);
      kept.push({ ...viewOf(definition.name), ...definition });
      return HttpResponse.json(kept.at(-1));
    }),
    http.delete(api("/views/:id"), ({ params }) => {
      kept.splice(
        kept.findIndex(({ id }) => id === params.id),
        1,
      );
      return new HttpResponse(null, { status: 204 });
    }),
  );
  return saved;
}

function viewOf(name: string, rest: Partial<View> = {}): View {
  return {
    ...{ id: `v-${name}`, name, search: "", shared: false, owner: "ada@example.com", own: true },
    ...{ updatedAt: "2026-11-21T13:01:00Z" },
    ...rest,
  };
}

function signedInAs(role: Me["role"]) {
  server.use(
    http.get(api("/me"), () =>
      HttpResponse.json({ kind: "user", id: "u1", name: "Ada", email: "ada@example.com", role, tenant: "default" }),
    ),
  );
}

test("a view is saved, opened and deleted", async () => {
  const saved = viewsOf();
  const { user, router } = open("/inbox?app=orders&severity=critical");
  await user.click(await screen.findByRole("button", { name: "Views" }));
  expect(await screen.findByText(/No saved views yet/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Save view" }));
  expect(await screen.findByText("Give the view a name.")).toBeVisible();
  await user.type(screen.getByLabelText("Save these filters as"), "Orders");
  await user.click(screen.getByRole("checkbox", { name: "Share with everyone" }));
  await user.click(screen.getByRole("button", { name: "Save view" }));
  expect(await screen.findByRole("link", { name: "Orders" })).toHaveAttribute(
    "href",
    "/inbox?severity=critical&app=orders",
  );
  expect(saved).toEqual([{ name: "Orders", search: "severity=critical&app=orders", shared: true }]);
  await user.type(screen.getByLabelText("Save these filters as"), "Orders");
  expect(await screen.findByRole("button", { name: "Replace view" })).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Close" }));
  await router.navigate({ to: "/inbox" });
  await user.click(screen.getByRole("button", { name: "Views" }));
  await user.click(await screen.findByRole("link", { name: "Orders" }));
  await waitFor(() => expect(router.state.location.search).toEqual({ app: "orders", severity: "critical" }));
  await user.click(screen.getByRole("button", { name: "Views" }));
  await user.click(await screen.findByRole("button", { name: "Delete Orders" }));
  await user.click(screen.getByRole("button", { name: "Delete view" }));
  await waitFor(() => expect(screen.queryByRole("link", { name: "Orders" })).toBeNull());
});

test("views of others are listed with their owner, and left to them", async () => {
  viewsOf(viewOf("Theirs", { own: false, shared: true, owner: "bo@example.com", search: "state=resolved&no=sense" }));
  signedInAs("viewer");
  const { user } = open("/inbox");
  await user.click(await screen.findByRole("button", { name: "Views" }));
  expect(await screen.findByRole("link", { name: "Theirs" })).toHaveAttribute("href", "/inbox?state=resolved");
  expect(screen.getByText("By bo@example.com")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Delete Theirs" })).toBeNull();
  expect(screen.queryByRole("checkbox", { name: "Share with everyone" })).toBeNull();
});

test("a view that is refused stays in the form", async () => {
  viewsOf();
  server.use(
    http.post(api("/views"), () =>
      problem(409, { code: "conflict", detail: "you can have at most 100 views; delete one of them" }),
    ),
  );
  const { user } = open("/inbox");
  await user.click(await screen.findByRole("button", { name: "Views" }));
  await user.type(await screen.findByLabelText("Save these filters as"), "One more");
  await user.click(screen.getByRole("button", { name: "Save view" }));
  expect(await screen.findByRole("alert")).toHaveTextContent(/100 views/);
  expect(screen.getByLabelText("Save these filters as")).toHaveValue("One more");
});
