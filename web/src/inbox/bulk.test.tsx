import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, describe, expect, test } from "vitest";
import type { AlertSelection } from "../api/client";
import { anAlert, api, countsOf, held, open, problem, startWorld } from "../test/world";

const { server, world } = startWorld();
const rows = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link");

/** A failure is tried twice more, after 1 and 2 s. */
const slow = { timeout: 8_000 };

let orders: AlertSelection[];
let undone: string[];

beforeEach(() => {
  orders = [];
  undone = [];
  world.alerts = [anAlert(5), anAlert(6), anAlert(7)];
  const before = world.alerts;
  server.use(
    http.post(api("/alerts/resolve"), async ({ request }) => {
      const order = (await request.json()) as AlertSelection;
      orders.push(order);
      const meant = world.alerts.filter(({ id }) => order.ids === undefined || order.ids.includes(id));
      world.alerts = world.alerts.filter((alert) => !meant.includes(alert));
      return HttpResponse.json({
        actionId: order.actionId,
        changed: meant.length,
        already: 0,
        refused: 0,
        unknown: 0,
        undoableUntil: new Date(Date.now() + 600_000).toISOString(),
      });
    }),
    http.post(api("/alerts/actions/:id/undo"), ({ params }) => {
      undone.push(String(params.id));
      const restored = before.length - world.alerts.length;
      world.alerts = before;
      return HttpResponse.json({ actionId: params.id, restored, skipped: 0 });
    }),
    http.get(api("/alerts/counts"), () => HttpResponse.json(countsOf(world.alerts))),
    http.get(api("/alerts/groups"), () =>
      HttpResponse.json({ items: world.alerts.length > 0 ? [{ count: world.alerts.length }] : [], asOf: "T" }),
    ),
  );
});

describe("many alerts", () => {
  test("stay selected while they are changed, and no button loses the focus meanwhile", async () => {
    const { released, release } = held();
    server.use(
      http.post(api("/alerts/assign"), async () => {
        await released;
        return problem(403, { code: "forbidden", detail: "No." });
      }),
    );
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("jx");
    const take = await screen.findByRole("button", { name: /^Assign to me/ });
    await user.click(take);
    await waitFor(() => expect(take).toHaveAttribute("aria-disabled", "true"));
    expect(take).toHaveFocus();
    for (const name of [/^Acknowledge 1/, /^Resolve 1/, /^Assign…/, "Mark as read", "Select all matching"]) {
      const button = screen.getByRole("button", { name });
      expect(button).toBeEnabled();
      expect(button).toHaveAttribute("aria-disabled", "true");
    }
    release();
    expect(await screen.findByText(/^Not assigned to ada@example\.com\. No\./)).toBeVisible();
    expect(take).toHaveFocus();
    expect(take).not.toHaveAttribute("aria-disabled");
  });

  test("are selected by key, resolved at once, and put back", async () => {
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("jx{Shift>}j{/Shift}");
    const ids = world.alerts.slice(0, 2).map(({ id }) => id);
    await user.click(screen.getByRole("button", { name: /Resolve 2 alerts/ }));
    await waitFor(() => expect(rows()).toHaveLength(1));
    expect(orders.map((order) => order.ids)).toEqual([ids]);

    await user.click(await screen.findByRole("button", { name: "Undo" }));
    await waitFor(() => expect(rows()).toHaveLength(3));
    expect(undone).toEqual([orders[0]?.actionId]);
    expect(screen.getByText("2 alerts restored.")).toBeVisible();
  });

  test("are resolved by the filter, whose number is shown first", async () => {
    const { user } = open("/inbox?q=orders&fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.click(screen.getByRole("checkbox", { name: "Select all matching alerts" }));
    const button = await screen.findByRole("button", { name: /Resolve 3 alerts/ });
    await user.click(button);
    await screen.findByText("3 alerts resolved.");
    expect(orders).toMatchObject([{ filter: { state: ["FIRING"], q: "orders" } }]);
  });

  test("whose answer is lost are asked for again by the same name, and nothing is done twice", async () => {
    const names: unknown[] = [];
    server.use(
      http.post(
        api("/alerts/resolve"),
        async ({ request }) => {
          names.push(((await request.clone().json()) as AlertSelection).actionId);
          return problem(503, { code: "unavailable" });
        },
        { once: true },
      ),
    );
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("jxr");
    await screen.findByText("1 alert resolved.");
    expect(names).toEqual([orders[0]?.actionId]);
  });

  test("of which a part is refused show what was changed, and put back", async () => {
    const [a, b, c] = world.alerts;
    const asked: AlertSelection[] = [];
    server.use(
      http.get(api("/alerts/groups"), () => {
        const items = [
          { signature: "E", count: 2, newest: a },
          { signature: "F", count: 1, newest: c },
        ];
        return HttpResponse.json({ items, asOf: "T" });
      }),
      http.post(api("/alerts/resolve"), async ({ request }) => {
        const order = (await request.clone().json()) as AlertSelection;
        asked.push(order);
        if (order.ids) return problem(503, { code: "unavailable", detail: "Postgres cannot be reached." });
        world.alerts = world.alerts.filter((alert) => alert !== a && alert !== b);
        const undoableUntil = new Date(Date.now() + 600_000).toISOString();
        const none = { already: 0, refused: 0, unknown: 0 };
        return HttpResponse.json({ actionId: order.actionId, changed: 2, ...none, undoableUntil });
      }),
    );
    const { user } = open("/inbox?fold=error");
    await screen.findByRole("button", { name: /×2/ });
    await user.keyboard("jx{Shift>}j{/Shift}");
    await user.click(await screen.findByRole("button", { name: /Resolve 3 alerts/ }));
    const said = await screen.findByText(/^2 alerts resolved, but not the rest\. /, undefined, slow);
    expect(said).toHaveTextContent(/\. Postgres cannot be reached\. .* Try again in a moment\.$/);
    // What was done is not sent again; what was refused is, with the same id.
    expect(asked.map(({ ids }) => ids)).toEqual([undefined, [c?.id], [c?.id], [c?.id]]);
    expect(new Set(asked.map(({ actionId }) => actionId)).size).toBe(2);
    await user.click(screen.getByRole("button", { name: "Undo" }));
    await screen.findByText("2 alerts restored.");
    expect(undone).toEqual([asked[0]?.actionId]);
  });

  test("that could not be put back are put back by a further try", async () => {
    const refuse = () => problem(503, { code: "unavailable", detail: "Postgres cannot be reached." });
    server.use(http.post(api("/alerts/actions/:id/undo"), refuse));
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("jrz");
    const said = await screen.findByText(/^Not undone\. Postgres cannot be reached\./, undefined, slow);
    expect(said).toHaveTextContent(/ Try again in a moment\.$/);
    expect(screen.getAllByRole("button", { name: "Undo" })).toHaveLength(1);
    server.use(
      http.post(api("/alerts/actions/:id/undo"), () => problem(409, { code: "conflict", detail: "Too late." })),
    );
    await user.keyboard("z");
    await screen.findByText(/^Not undone\. Too late\./);
    await user.keyboard("z");
    expect(screen.queryByRole("button", { name: "Undo" })).toBeNull();
    expect(undone).toEqual([]);
  });

  test("are left to those who may act", async () => {
    server.use(
      http.get(api("/me"), () => HttpResponse.json({ kind: "user", name: "Vi", role: "viewer", tenant: "default" })),
    );
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("jxr");
    expect(screen.getByText("1 selected")).toBeVisible();
    expect(screen.queryByRole("button", { name: /Resolve|Acknowledge/ })).toBeNull();
    expect(orders).toEqual([]);
  });
});

describe("folded alerts", () => {
  test("stand for theirs, and show each when they are opened", async () => {
    const [newest] = world.alerts;
    server.use(
      http.get(api("/alerts/groups"), () =>
        HttpResponse.json({ items: [{ signature: "E", count: 3, unread: 2, newest }], asOf: "T" }),
      ),
    );
    const { user, router } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.selectOptions(screen.getByRole("combobox", { name: "Group alerts" }), "By error");
    const group = await screen.findByRole("button", { name: /×3/, expanded: false });
    expect(router.state.location.search).toEqual({ fold: "error" });
    await user.click(group);
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("r");
    await screen.findByText("3 alerts resolved.");
    expect(orders).toMatchObject([{ filter: { signature: ["E"] }, upTo: "T" }]);
  });
});

test("what is opened is read", async () => {
  world.alerts = [anAlert(5, { unread: true })];
  const read: unknown[] = [];
  server.use(
    http.post(api("/alerts/read"), async ({ request }) => {
      read.push(await request.json());
      return HttpResponse.json({ changed: 1 });
    }),
  );
  const { user } = open("/inbox?fold=none");
  await waitFor(() => expect(rows()).toHaveLength(1));
  expect(rows()[0]).toHaveTextContent("Unread.");
  await user.keyboard("j{Enter}");
  await waitFor(() => expect(read).toEqual([{ ids: [world.alerts[0]?.id], unread: false }]));
});

test("the question mark shows all keys", async () => {
  const { user } = open("/inbox?fold=none");
  await waitFor(() => expect(rows()).toHaveLength(3));
  await user.keyboard("?");
  const dialog = screen.getByRole("dialog", { name: "Keyboard shortcuts" });
  await user.click(within(dialog).getByRole("button", { name: "Close" }));
  expect(screen.queryByRole("dialog")).toBeNull();
});
