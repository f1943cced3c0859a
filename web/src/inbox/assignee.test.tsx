import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { describe, expect, test } from "vitest";
import type { Alert, AlertSelection } from "../api/client";
import { anAlert, api, open, problem, startWorld } from "../test/world";

const { server, world } = startWorld();

/** Stores assignments as the server does, and the requests. */
function assigning() {
  const asked: unknown[] = [];
  server.use(
    http.post(api("/alerts/:id/assign"), async ({ params, request }) => {
      const body = (await request.json()) as { assignee: string; was: string };
      asked.push(body);
      const alert = world.alerts.find(({ id }) => id === params.id) as Alert;
      if ((alert.assignee ?? "") !== body.was) {
        return problem(409, { code: "conflict", detail: `The alert is assigned to ${alert.assignee}.` });
      }
      if (body.assignee === "") {
        delete alert.assignee;
        delete alert.assignedAt;
        delete alert.assignedBy;
      } else {
        Object.assign(alert, {
          assignee: body.assignee,
          assignedAt: new Date().toISOString(),
          assignedBy: "ada@example.com",
        });
      }
      return HttpResponse.json(alert);
    }),
  );
  return asked;
}

const row = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link")[0];
const field = () => screen.findByRole("combobox", { name: "Assigned to" });

describe("an alert", () => {
  test("is taken and given back, and the list shows who has it", async () => {
    world.alerts = [anAlert(5)];
    const asked = assigning();
    const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
    // Nobody handles it and its rule says nothing about handling, but it can be assigned to anybody.
    expect(await field()).toHaveValue("");
    await user.click(await screen.findByRole("button", { name: "Assign to me" }));
    await waitFor(() => expect(row()).toHaveTextContent("Assigned to ada@example.com"));
    expect(await field()).toHaveValue("ada@example.com");
    await screen.findByRole("button", { name: "Unassign" });
    await user.keyboard("m");
    await waitFor(() => expect(row()).not.toHaveTextContent("Assigned to"));
    expect(asked).toEqual([
      { assignee: "ada@example.com", was: "" },
      { assignee: "", was: "ada@example.com" },
    ]);
  });

  test("is passed to someone else", async () => {
    world.alerts = [anAlert(5, { assignee: "cy@example.com", assignedBy: "cy@example.com" })];
    const asked = assigning();
    const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
    await screen.findByRole("option", { name: "bo@example.com" });
    expect(screen.queryByRole("button", { name: /Assign to me|Unassign/ })).toBeNull();
    await user.selectOptions(await field(), "bo@example.com");
    await waitFor(() => expect(row()).toHaveTextContent("Assigned to bo@example.com"));
    expect(asked).toEqual([{ assignee: "bo@example.com", was: "cy@example.com" }]);
  });

  test("that somebody took first stays theirs, and the reader learns whose it is", async () => {
    world.alerts = [anAlert(5)];
    const asked = assigning();
    const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
    const take = await screen.findByRole("button", { name: "Assign to me" });
    Object.assign(world.alerts[0] as Alert, { assignee: "bo@example.com", assignedBy: "bo@example.com" });
    await user.click(take);
    await screen.findByText(/was not assigned. The alert is assigned to bo@example.com/);
    await waitFor(async () => expect(await field()).toHaveValue("bo@example.com"));
    expect(asked).toHaveLength(1);
  });

  test("that is over is not assigned any more", async () => {
    world.alerts = [anAlert(5, { state: "RESOLVED", assignee: "bo@example.com", assignedBy: "bo@example.com" })];
    open(`/inbox/${world.alerts[0]?.id}?state=resolved&fold=none`);
    await screen.findByText("bo@example.com", { selector: "dd *, dd" });
    expect(screen.queryByRole("combobox", { name: "Assigned to" })).toBeNull();
    expect(screen.queryByRole("button", { name: "Assign to me" })).toBeNull();
  });
});

test("alerts are filtered by who has them", async () => {
  world.alerts = [anAlert(5)];
  const asked: string[][] = [];
  server.events.on("request:start", ({ request }) => {
    const url = new URL(request.url);
    if (url.pathname.endsWith("/alerts")) asked.push(url.searchParams.getAll("assignee"));
  });
  const { user, router } = open("/inbox?fold=none");
  await user.click(await screen.findByRole("button", { name: /More/ }));
  await user.selectOptions(await screen.findByRole("combobox", { name: "Assigned to" }), "Unassigned");
  await user.click(screen.getByRole("button", { name: "Apply" }));
  await waitFor(() => expect(router.state.location.search).toMatchObject({ assignee: "none" }));
  await screen.findByRole("link", { name: /Unassigned/ });
  await waitFor(() => expect(asked.at(-1)).toEqual([""]));
  server.events.removeAllListeners();
});

describe("many alerts", () => {
  interface Order extends AlertSelection {
    assignee: string;
    reassign: boolean;
  }

  /** Assigns as the server does, and stores the requests and the undos. */
  function assigningMany() {
    const asked: Order[] = [];
    const undone: unknown[] = [];
    server.use(
      http.post(api("/alerts/assign"), async ({ request }) => {
        const order = (await request.json()) as Order;
        asked.push(order);
        const meant = world.alerts.filter(({ id }) => order.ids === undefined || order.ids.includes(id));
        const left = meant.filter(({ assignee }) => !order.reassign && assignee === "cy@example.com");
        for (const alert of meant.filter((one) => !left.includes(one))) {
          if (order.assignee === "") delete alert.assignee;
          else
            Object.assign(alert, {
              assignee: order.assignee,
              assignedBy: "ada@example.com",
              assignedAt: alert.firedAt,
            });
        }
        return HttpResponse.json({
          actionId: order.actionId,
          changed: meant.length - left.length,
          already: 0,
          refused: left.length,
          unknown: 0,
          undoableUntil: new Date(Date.now() + 600_000).toISOString(),
        });
      }),
      http.post(api("/alerts/actions/:id/undo"), ({ params }) => {
        undone.push(params.id);
        for (const alert of world.alerts) delete alert.assignee;
        return HttpResponse.json({ actionId: params.id, restored: 2, skipped: 0 });
      }),
    );
    return { asked, undone };
  }

  const rows = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link");

  test("are taken by key, and given back by the undo", async () => {
    world.alerts = [anAlert(5), anAlert(6), anAlert(7)];
    const { asked, undone } = assigningMany();
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(3));
    await user.keyboard("jx{Shift>}j{/Shift}m");
    await screen.findByText("2 alerts assigned to ada@example.com.");
    expect(asked).toMatchObject([
      { ids: world.alerts.slice(0, 2).map(({ id }) => id), assignee: "ada@example.com", reassign: false },
    ]);
    await waitFor(() => expect(rows()[1]).toHaveTextContent("Assigned to ada@example.com"));
    await user.keyboard("z");
    await screen.findByText("2 alerts restored.");
    expect(undone).toEqual([asked[0]?.actionId]);
    await waitFor(() => expect(rows()[1]).not.toHaveTextContent("Assigned to"));
  });

  test("are passed to someone from the bar, and those of others only where that is meant", async () => {
    world.alerts = [anAlert(5), anAlert(6, { assignee: "cy@example.com", assignedBy: "cy@example.com" })];
    const { asked } = assigningMany();
    server.use(
      http.get(api("/alerts/groups"), () => HttpResponse.json({ items: [{ count: world.alerts.length }], asOf: "T" })),
    );
    const { user } = open("/inbox?q=orders&fold=none");
    await waitFor(() => expect(rows()).toHaveLength(2));
    const hand = async (reassign: boolean) => {
      await user.click(screen.getByRole("checkbox", { name: "Select all matching alerts" }));
      await user.click(await screen.findByRole("button", { name: "Assign…" }));
      const dialog = await screen.findByRole("dialog", { name: /^Assign / });
      await within(dialog).findByRole("option", { name: "bo@example.com" });
      await user.selectOptions(within(dialog).getByRole("combobox", { name: "Assign to" }), "bo@example.com");
      if (reassign)
        await user.click(within(dialog).getByRole("checkbox", { name: "Include alerts that others are handling" }));
      await user.click(within(dialog).getByRole("button", { name: "Assign" }));
    };
    await hand(false);
    await screen.findByText(
      "1 alert assigned to bo@example.com. 1 alert not changed: others are handling them, or they are resolved.",
    );
    await hand(true);
    await screen.findByText("2 alerts assigned to bo@example.com.");
    expect(asked).toMatchObject([
      { filter: { q: "orders" }, assignee: "bo@example.com", reassign: false },
      { filter: { q: "orders" }, assignee: "bo@example.com", reassign: true },
    ]);
  });

  test("that are selected have the key, also beside an open alert", async () => {
    world.alerts = [anAlert(5), anAlert(6)];
    const { asked } = assigningMany();
    const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
    await screen.findByRole("button", { name: "Assign to me" });
    await user.click(screen.getAllByRole("checkbox", { name: /^Select/ }).at(-1) as HTMLElement);
    await screen.findByText("1 selected");
    await user.keyboard("m");
    await screen.findByText("1 alert assigned to ada@example.com.");
    expect(asked.map(({ ids }) => ids)).toEqual([[world.alerts[1]?.id]]);
  });

  test("are left to those who may act", async () => {
    world.alerts = [anAlert(5)];
    const { asked } = assigningMany();
    server.use(
      http.get(api("/me"), () => HttpResponse.json({ kind: "user", name: "Vi", role: "viewer", tenant: "default" })),
    );
    const { user } = open("/inbox?fold=none");
    await waitFor(() => expect(rows()).toHaveLength(1));
    await user.keyboard("jxm{Shift>}m{/Shift}");
    await screen.findByText("1 selected");
    expect(screen.queryByRole("button", { name: /^Assign/ })).toBeNull();
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(asked).toEqual([]);
  });
});
