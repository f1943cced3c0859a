import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { describe, expect, test } from "vitest";
import type { Alert } from "../api/client";
import { anAlert, api, countsOf, open, problem, startWorld, streams } from "../test/world";

const { server, world } = startWorld();

const rows = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link");
const routes = () =>
  rows().map((row) => /orders · ([\w-]+?)(?=\d|ConnectException|now)/.exec(row.textContent ?? "")?.[1]);

/** Three alerts, the newest of route "a". */
function three() {
  world.alerts = [anAlert(5, { route: "a-" }), anAlert(6, { route: "b-" }), anAlert(7, { route: "c-" })];
  return world.alerts;
}

describe("the inbox", () => {
  test("shows firing alerts, newest first, with the counts of all states", async () => {
    world.alerts = [anAlert(8), anAlert(60), anAlert(90, { state: "RESOLVED" })];
    open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(2));
    expect(rows()[0]).toHaveTextContent(/^CRITorders · order-to-erp\d+ s agoConnectException: ERP refused$/);
    expect(screen.getByRole("link", { name: /Firing\s*2/ })).toHaveAttribute("aria-current", "page");
    expect(screen.getByRole("link", { name: /Resolved\s*1/ })).not.toHaveAttribute("aria-current");
    expect(document.title).toBe("(2) Inbox · Tocsin");
  });

  test("shows what comes in by itself, and keeps the open alert open", async () => {
    three();
    const { user, router } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("j{Enter}");
    await screen.findByRole("heading", { name: "orders · a-: FAILED" });
    const opened = router.state.location.pathname;

    world.alerts.unshift(anAlert(0, { route: "z-" }));
    streams.at(-1)?.tell(countsOf(world.alerts));

    await waitFor(() => expect(routes()).toEqual(["z-", "a-", "b-", "c-"]));
    expect(router.state.location.pathname).toBe(opened);
    expect(rows()[1]).toHaveAttribute("aria-current", "page");
  });

  test("acknowledges the row under the cursor by key, leaves the others and moves on", async () => {
    const [, b] = three();
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("jja");
    await waitFor(() => expect(routes()).toEqual(["a-", "c-"]));
    await waitFor(() => expect(b?.state).toBe("ACKNOWLEDGED"));
    expect(world.alerts.map((alert) => alert.state)).toEqual(["FIRING", "ACKNOWLEDGED", "FIRING"]);
    await user.keyboard("r");
    await waitFor(() => expect(world.alerts[2]?.state).toBe("RESOLVED"));
  });

  test.each(["a", "r"])("does once what %s says however long it is held, and moves for as long", async (key) => {
    three();
    const asked: unknown[] = [];
    server.use(http.post(api("/alerts/:action"), ({ params }) => void asked.push(params.action)));
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    const hold = (held: string) => {
      for (let times = 0; times < 5; times++) fireEvent.keyDown(document.body, { key: held, repeat: times > 0 });
      fireEvent.keyUp(document.body, { key: held });
    };
    await user.keyboard("j");
    hold(key);
    await screen.findByText(/^orders · a- (acknowledged|resolved)\.$/);
    await waitFor(() => expect(routes()).toEqual(["b-", "c-"]));
    expect(asked).toHaveLength(1);
    hold("j");
    await waitFor(() => expect(rows()[1]).toHaveFocus());
  });

  test("keeps the row of an acknowledged alert for as long as it is open", async () => {
    three();
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("jj{Enter}");
    await user.click(await screen.findByRole("button", { name: /Acknowledge/ }));
    await waitFor(() => expect(rows()[1]).toHaveTextContent("Acknowledged"));
    await waitFor(() => expect(world.alerts[1]?.state).toBe("ACKNOWLEDGED"));
    expect(routes()).toEqual(["a-", "b-", "c-"]);
    await user.keyboard("{Escape}");
    await waitFor(() => expect(routes()).toEqual(["a-", "c-"]));
  });

  test("offers to undo what was done to one alert, by key too", async () => {
    three();
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    const undone: unknown[] = [];
    server.use(
      http.post(api("/alerts/actions/:id/undo"), ({ params }) => {
        undone.push(params.id);
        for (const alert of world.alerts) alert.state = "FIRING";
        return HttpResponse.json({ actionId: params.id, restored: 1, skipped: 0 });
      }),
    );
    await user.keyboard("jr");
    await screen.findByText("orders · a- resolved.");
    expect(screen.getByRole("button", { name: "Undo" })).toBeVisible();
    await user.keyboard("z");
    await screen.findByText("1 alert restored.");
    await waitFor(() => expect(routes()).toEqual(["a-", "b-", "c-"]));
    expect(screen.queryByText("Nothing to undo.")).not.toBeInTheDocument();
    await user.keyboard("z");
    expect(within(screen.getByRole("region", { name: "Messages" })).getByText("Nothing to undo.")).toBeVisible();
    expect(undone).toHaveLength(1);
  });

  test("brings a row back and says why when the server refuses", async () => {
    three();
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    // No further request of the page would bring the row back.
    const down = () => problem(503, { code: "unavailable", detail: "Postgres cannot be reached." });
    server.use(http.post(api("/alerts/acknowledge"), down), http.get(api("/alerts"), down));
    await user.keyboard("ja");
    await screen.findByText(/was not acknowledged. Postgres cannot be reached./);
    await waitFor(() => expect(routes()).toEqual(["a-", "b-", "c-"]));
  });

  test("searches at once on Enter, and gives the keys back to the list", async () => {
    three();
    const { user, router } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("/b-{Enter}");
    await waitFor(() => expect(router.state.location.search).toMatchObject({ q: "b-" }));
    await waitFor(() => expect(routes()).toEqual(["b-"]));
    await user.keyboard("a");
    expect(screen.getByRole("searchbox")).toHaveValue("b-");
  });

  test("keeps the filter in the address", async () => {
    world.alerts = [anAlert(5, { title: "Needle", severity: "WARNING" }), anAlert(6)];
    const { user, router } = open("/inbox?severity=critical&severity=warning&fold=none");
    await waitFor(() => expect(rows()).toHaveLength(2));
    await user.keyboard("/");
    await user.keyboard("needle");
    await waitFor(() => expect(rows()).toHaveLength(1));
    expect(router.state.location.search).toEqual({
      severity: ["critical", "warning"],
      q: "needle",
      fold: "none",
    });
  });

  test("says what to do when nothing fits the filter", async () => {
    open("/inbox?q=nothing&fold=none");
    expect(await screen.findByRole("heading", { name: "No matching alerts" })).toBeVisible();
  });

  test("says what failed and offers to try again", async () => {
    server.use(http.get(api("/alerts"), () => problem(403, { code: "forbidden", detail: "You may not see alerts." })));
    open("/inbox?fold=none");
    const failed = await screen.findByRole("alert");
    expect(failed).toHaveTextContent(/^You may not see alerts.\s*Ask an administrator for a role that allows this./);
    expect(within(failed).getByRole("button", { name: "Try again" })).toBeVisible();
  });
});

describe("counts", () => {
  const count = { observed: 7, threshold: 5, windowSeconds: 600, groupBy: "ROUTE", group: "order-to-erp" } as const;
  const title = "order-to-erp: 7 exchanges within 10 min";

  test("say how many of how many, and show the newest exchange as an example", async () => {
    world.alerts = [anAlert(5, { count, title })];
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()[0]).toHaveTextContent("7 / 5 within 10 min: ConnectException: ERP refused"));
    expect(screen.queryByRole("link", { name: /Pending/ })).toBeNull();
    await user.keyboard("j{Enter}");
    await screen.findByRole("heading", { name: title });
    expect(screen.getByRole("heading", { name: "Newest exchange" })).toBeVisible();
  });

  test("that go on tell of their reminders by themselves", async () => {
    world.alerts = [anAlert(5, { count, title })];
    let items: unknown[] = [];
    server.use(http.get(api("/alerts/:id/notifications"), () => HttpResponse.json({ items })));
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(1));
    await user.keyboard("j{Enter}");
    await screen.findByText("Fired");
    const at = new Date().toISOString();
    const [{ id: alertId, ruleId }] = world.alerts as [Alert];
    const reminder = { id: "n1", alertId, ruleId, webhookId: "w1", webhookName: "#ops", reason: "REMINDER" };
    items = [{ ...reminder, status: "EXHAUSTED", attemptCount: 6, createdAt: at, settledAt: at, attempts: [] }];
    streams.at(-1)?.tell(countsOf(world.alerts));
    expect(await screen.findByText("Still firing")).toBeVisible();
    expect(screen.getByText(/reminder to #ops/)).toBeVisible();
  });

  test("that wait have a tab while there are any, and cannot be acted upon", async () => {
    const { exchange: _, ...bare } = anAlert(5, { count, title, state: "PENDING" });
    world.alerts = [bare];
    const { user } = open("/inbox?fold=none");
    await user.click(await screen.findByRole("link", { name: /Pending\s*1/ }));
    await waitFor(() => expect(rows()).toHaveLength(1));
    await user.keyboard("jr{Enter}");
    await screen.findByText("Reached the threshold");
    expect(screen.queryByRole("button", { name: /Resolve|Acknowledge/ })).toBeNull();
    expect(screen.queryByRole("heading", { name: "Newest exchange" })).toBeNull();
    expect(world.alerts[0]?.state).toBe("PENDING");
  });
});
