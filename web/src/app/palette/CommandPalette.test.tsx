import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { anAlert, api, open, startWorld } from "../../test/world";

const { server, world } = startWorld();

const field = () => screen.findByRole("combobox", { name: "Find or do anything" });
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
  const { user, router } = open("/inbox");
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
  expect(screen.queryByRole("combobox", { name: "Find or do anything" })).toBeNull();
});

test("reaches rules and webhooks by name, and alerts by search", async () => {
  world.alerts = [anAlert(5, { title: "orders · vanished: FAILED", route: "vanished", state: "RESOLVED" })];
  server.use(
    http.get(api("/rules"), () => HttpResponse.json({ items: [{ id: "r1", name: "Failed orders", enabled: true }] })),
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [{ id: "w1", name: "#ops", enabled: true }] })),
  );
  const { user, router } = open("/inbox");
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
  const opened = open(`/inbox/${alert.id}`);
  await screen.findByRole("heading", { name: /one/ });
  await opened.user.keyboard("{Meta>}k{/Meta}");
  await option(/New rule/);
  await option(/Users/);
  await opened.user.click(await option(/Acknowledge this alert/));
  await waitFor(() => expect(world.alerts[0]?.state).toBe("ACKNOWLEDGED"));
  opened.unmount();

  who("viewer");
  const { user } = open(`/inbox/${alert.id}`);
  await screen.findByRole("heading", { name: /one/ });
  await user.keyboard("{Control>}k{/Control}");
  await option(/Sign out/);
  for (const name of [/Acknowledge/, /Resolve/, /New rule/, /Users/]) {
    expect(screen.queryByRole("option", { name })).toBeNull();
  }
});

test("gives the focus back", async () => {
  const { user } = open("/inbox");
  const button = await screen.findByRole("button", { name: /Find/ });
  await user.click(button);
  await waitFor(async () => expect(await field()).toHaveFocus());
  await user.keyboard("{Escape}");
  await waitFor(() => expect(screen.queryByRole("combobox", { name: "Find or do anything" })).toBeNull());
});
