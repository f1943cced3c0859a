import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { anAlert, api, open, startWorld } from "../../test/world";

const { server, world } = startWorld();

const field = () => screen.findByRole("combobox", { name: "Search or run a command" });
const option = (name: RegExp) => screen.findByRole("option", { name });
const pointed = (input: HTMLElement) => document.getElementById(input.getAttribute("aria-activedescendant") ?? "");

function who(role: string) {
  server.use(
    http.get(api("/me"), () =>
      HttpResponse.json({ kind: "user", id: "u1", name: "Ada", email: "ada@example.com", role, tenant: "default" }),
    ),
  );
}

test("opens by key, points at options while the field keeps the focus, and goes where it says", async () => {
  const { user, router } = open("/inbox?fold=none");
  await screen.findByRole("navigation", { name: "Tocsin" });
  await user.keyboard("{Control>}k{/Control}");
  const input = await field();
  await waitFor(() => expect(input).toHaveFocus());
  await user.type(input, "deliver");
  await waitFor(() => expect(pointed(input)).toHaveTextContent("Deliveries"));
  expect(pointed(input)).toHaveAttribute("aria-selected", "true");
  await user.keyboard("{ArrowDown}");
  await waitFor(() => expect(pointed(input)).not.toHaveTextContent("Deliveries"));
  await user.keyboard("{ArrowUp}{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe("/deliveries"));
  expect(screen.queryByRole("combobox", { name: "Search or run a command" })).toBeNull();
});

test("reaches rules and webhooks by name, and alerts by search", async () => {
  world.alerts = [anAlert(5, { title: "orders · vanished: FAILED", route: "vanished", state: "RESOLVED" })];
  server.use(
    http.get(api("/rules/names"), () =>
      HttpResponse.json({ items: [{ id: "r1", name: "Failed orders", enabled: true }] }),
    ),
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [{ id: "w1", name: "#ops", enabled: true }] })),
  );
  const { user, router } = open("/inbox?fold=none");
  await user.click(await screen.findByRole("button", { name: /Find/ }));
  const input = await field();
  await user.type(input, "failed ord");
  await option(/Failed orders/);
  await user.clear(input);
  await user.type(input, "#op");
  await option(/#ops/);
  await user.clear(input);
  await user.type(input, "vanished");
  await user.click(await option(/orders · vanished/));
  await waitFor(() => expect(router.state.location.pathname).toBe(`/inbox/${world.alerts[0]?.id}`));
  expect(router.state.location.search).toMatchObject({ state: "resolved", q: "vanished" });
});

test("acts on the alert that is open, and leaves to others what is not for one's role", async () => {
  const alert = anAlert(5, { route: "one" });
  world.alerts = [alert];
  const opened = open(`/inbox/${alert.id}?fold=none`);
  await screen.findByRole("heading", { name: /one/ });
  await opened.user.keyboard("{Meta>}k{/Meta}");
  await option(/New rule/);
  await option(/Users/);
  await opened.user.click(await option(/Acknowledge this alert/));
  await waitFor(() => expect(world.alerts[0]?.state).toBe("ACKNOWLEDGED"));
  opened.unmount();

  who("viewer");
  const { user } = open(`/inbox/${alert.id}?fold=none`);
  await screen.findByRole("heading", { name: /one/ });
  await user.keyboard("{Control>}k{/Control}");
  await option(/Sign out/);
  for (const name of [/Acknowledge/, /Resolve/, /New rule/, /Users/]) {
    expect(screen.queryByRole("option", { name })).toBeNull();
  }
});

test("leads people who may not edit a webhook to the list of webhooks", async () => {
  who("viewer");
  const health = { state: "ok", consecutiveFailures: 0 };
  const webhook = { id: "w1", name: "#ops", kind: "slack", enabled: true, health };
  server.use(
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [webhook] })),
    http.get(api("/silences"), () => HttpResponse.json({ items: [] })),
  );
  const { user, router } = open("/silences");
  await screen.findByText("Operators can create silences.");
  await user.keyboard("{Control>}k{/Control}");
  await user.type(await field(), "#ops");
  await user.click(await option(/^#ops/));
  await waitFor(() => expect(router.state.location.href).toBe("/webhooks#w1"));
});

test("gives the focus back", async () => {
  const { user } = open("/inbox?fold=none");
  const button = await screen.findByRole("button", { name: /Find/ });
  await user.click(button);
  await waitFor(async () => expect(await field()).toHaveFocus());
  await user.keyboard("{Escape}");
  await waitFor(() => expect(screen.queryByRole("combobox", { name: "Search or run a command" })).toBeNull());
});

test("what the palette did is what z undoes, after something was done by key before", async () => {
  const [first, second] = [anAlert(5, { route: "one" }), anAlert(6, { route: "two" })];
  world.alerts = [first, second];
  const actions: { actionId: string; ids: string[] }[] = [];
  const undone: unknown[] = [];
  server.use(
    http.post(api("/alerts/acknowledge"), async ({ request }) => {
      const asked = (await request.json()) as { actionId: string; ids: string[] };
      actions.push(asked);
      const undoableUntil = new Date(Date.now() + 600_000).toISOString();
      return HttpResponse.json({ ...asked, changed: 1, already: 0, refused: 0, unknown: 0, undoableUntil });
    }),
    http.post(api("/alerts/actions/:id/undo"), ({ params }) => {
      undone.push(params.id);
      return HttpResponse.json({ actionId: params.id, restored: 1, skipped: 0 });
    }),
  );
  const { user } = open("/inbox?fold=none");
  await screen.findByRole("list", { name: "Alerts" });
  await user.keyboard("ja");
  await screen.findByText("orders · one acknowledged.");
  await user.keyboard("{Enter}");
  await screen.findByRole("heading", { name: /two/ });
  await user.keyboard("{Control>}k{/Control}");
  await user.click(await option(/Acknowledge this alert/));
  await screen.findByText("orders · two acknowledged.");
  expect(actions.map(({ ids }) => ids)).toEqual([[first.id], [second.id]]);
  await user.keyboard("z");
  await screen.findByText("1 alert restored.");
  expect(undone).toEqual([actions[1]?.actionId]);
});

test("single keys can be switched off, and what needs no letter still works", async () => {
  world.alerts = [anAlert(5, { route: "one" })];
  const { user, router } = open("/inbox?fold=none");
  await screen.findByRole("list", { name: "Alerts" });
  await user.keyboard("?");
  const help = await screen.findByRole("dialog", { name: "Keyboard shortcuts" });
  expect(help).toHaveTextContent("Undo last acknowledgement, resolution or assignment");
  await user.click(await screen.findByRole("checkbox", { name: "Single-key shortcuts" }));
  await user.keyboard("{Escape}");
  await user.click(screen.getByRole("button", { name: "Close" }));
  await user.keyboard("ja");
  expect(world.alerts[0]?.state).toBe("FIRING");
  await user.keyboard("{ArrowDown}{Enter}");
  await waitFor(() => expect(router.state.location.pathname).toBe(`/inbox/${world.alerts[0]?.id}`));
  expect(await screen.findByRole("button", { name: "Acknowledge" })).toHaveTextContent(/^Acknowledge$/);
  await user.keyboard("{Control>}k{/Control}");
  await user.click(await option(/Turn on single-key shortcuts/));
  await user.keyboard("a");
  await waitFor(() => expect(world.alerts[0]?.state).toBe("ACKNOWLEDGED"));
});
