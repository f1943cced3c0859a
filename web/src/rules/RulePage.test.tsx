import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import type { RuleChange } from "../api/client";
import { aRule } from "../test/rules";
import { anAlert, api, open, problem, startWorld } from "../test/world";

const { server, world } = startWorld();
const rule = aRule();
const address = `/rules/${rule.id}`;

const changes: RuleChange[] = [
  {
    id: 2,
    at: "2026-11-21T13:00:00Z",
    actor: "bo@example.com",
    actorKind: "user",
    action: "update",
    before: { scope: { applications: ["billing"] } },
    after: { scope: { applications: ["orders"] } },
  },
  { id: 1, at: "2026-11-20T14:00:00Z", actor: "ada@example.com", actorKind: "user", action: "create", after: {} },
];

beforeEach(() => {
  server.use(
    http.get(api("/rules/:id"), () => HttpResponse.json(rule)),
    http.get(api("/rules/:id/activity"), () =>
      HttpResponse.json({
        from: "2026-11-20T14:00:00Z",
        bucketSeconds: 900,
        complete: true,
        buckets: Array.from({ length: 96 }, (_, step) => (step === 90 ? 7 : 0)),
      }),
    ),
    http.get(api("/rules/:id/history"), () => HttpResponse.json({ items: changes })),
    http.get(api("/notifications"), () => HttpResponse.json({ items: [] })),
  );
});

test("a rule's page tells what it does, how it is doing, and who changed it; editing is a page of its own", async () => {
  world.alerts = [anAlert(60)];
  const { user, router } = open(address);
  expect(await screen.findByText(/^Whenever an exchange of orders fails/)).toBeVisible();
  expect(await screen.findByRole("img", { name: /^7 alerts, per 15 minutes/ })).toBeInTheDocument();
  const alerts = within(screen.getByRole("region", { name: "Open alerts" }));
  expect(await alerts.findByRole("link", { name: /order-to-erp/ })).toBeVisible();
  expect(await screen.findByText("The rule has no webhooks.")).toBeVisible();
  const history = within(screen.getByRole("region", { name: "History" }));
  expect(await history.findByText(/bo@example\.com/)).toBeVisible();
  const line = history.getByText("Applications").closest("div");
  expect(line).toHaveTextContent("Applicationsremoved billingadded orders");

  await user.click(screen.getByRole("link", { name: "Edit" }));
  expect(await screen.findByLabelText("Name")).toHaveValue("Failed orders");
  expect(router.state.location.pathname).toBe(`${address}/edit`);
});

test("a rule's page shows whom it belongs to, and what to do", async () => {
  const about = { owner: "integration", runbookUrl: "https://wiki.example/orders", note: "Ask ERP first." };
  const described = { ...rule, ...about, labels: { tier: "gold", service: "desk" } };
  server.use(http.get(api("/rules/:id"), () => HttpResponse.json(described)));
  open(address);
  const definition = within(await screen.findByRole("region", { name: "Definition" }));
  expect(definition.getByText("integration")).toBeVisible();
  expect(definition.getByRole("link", { name: /wiki\.example\/orders/ })).toHaveAttribute("href", about.runbookUrl);
  expect(definition.getByText("service=desk, tier=gold")).toBeVisible();
  expect(definition.getByText("Ask ERP first.")).toBeVisible();
});

test("an arrow key tells the values of the chart one by one", async () => {
  const { user } = open(address);
  const chart = await screen.findByRole("img", { name: /per 15 minutes/ });
  chart.focus();
  await user.keyboard("{Home}");
  expect(chart.closest("figure")).toHaveTextContent(/· 0$/);
});

test("a part that cannot be had leaves the others", async () => {
  server.use(http.get(api("/rules/:id/history"), () => problem(500, { code: "internal" })));
  open(address);
  expect(await screen.findByText(/^Whenever an exchange of orders fails/)).toBeVisible();
  expect(await screen.findByText(/The history could not be loaded/)).toBeVisible();
});

test("a rule that cannot be read says so, on its page and in its editor", async () => {
  const unreadable = "the stored filter cannot be read: not an object";
  server.use(http.get(api("/rules/:id"), () => HttpResponse.json({ ...rule, scope: {}, filter: {}, unreadable })));
  const { user } = open(address);
  expect(await screen.findByText("The stored definition of this rule cannot be read.")).toBeVisible();
  expect(screen.getByText(`Cannot be read: ${unreadable}`)).toBeVisible();
  expect(screen.queryByText(/^Whenever an exchange/)).toBeNull();
  await user.click(screen.getByRole("link", { name: "Edit" }));
  expect(await screen.findByText(/Saving replaces the definition/)).toHaveTextContent(unreadable);
});

test("a rule's page reads the few messages that it shows", async () => {
  const asked: URLSearchParams[] = [];
  const message = {
    status: "DELIVERED",
    webhookName: "#ops",
    alertTitle: "Refused",
    createdAt: "2026-11-21T13:00:00Z",
  };
  server.use(
    http.get(api("/notifications"), ({ request }) => {
      const query = new URL(request.url).searchParams;
      asked.push(query);
      const items = Array.from({ length: 20 }, (_, at) => ({ ...message, id: `n${at}` }));
      return HttpResponse.json({ items: items.slice(0, Number(query.get("limit"))), nextCursor: "c" });
    }),
  );
  open(address);
  const deliveries = within(await screen.findByRole("region", { name: "Deliveries" }));
  expect(await deliveries.findAllByRole("listitem")).toHaveLength(8);
  expect(asked.map((query) => [query.get("limit"), query.get("ruleId")])).toEqual([["8", rule.id]]);
});

test("the switch shows what a rule became, also while its history is still read", async () => {
  let stored = rule;
  let slow = false;
  let release = () => {};
  server.use(
    http.get(api("/rules/:id"), () => HttpResponse.json(stored)),
    http.get(api("/rules/:id/history"), async () => {
      if (slow) await new Promise<void>((resolve) => (release = resolve));
      return HttpResponse.json({ items: changes });
    }),
    http.post(api("/rules/:id/disable"), () => {
      stored = { ...rule, enabled: false };
      slow = true;
      return HttpResponse.json(stored);
    }),
  );
  const { user } = open(address);
  const toggle = await screen.findByRole("switch", { name: `${rule.name} is enabled` });
  await screen.findByText("Applications");
  await user.click(toggle);
  await waitFor(() => expect(screen.getAllByText("Disabled")).not.toHaveLength(0));
  expect(toggle).not.toBeChecked();
  // It keeps the focus, and is not turned back by another press.
  expect(toggle).toBeEnabled();
  await user.click(toggle);
  expect(toggle).not.toBeChecked();
  release();
});

test("older changes that cannot be loaded say so", async () => {
  server.use(
    http.get(api("/rules/:id/history"), ({ request }) =>
      new URL(request.url).searchParams.has("cursor")
        ? problem(400, { detail: "The cursor is invalid" })
        : HttpResponse.json({ items: changes, nextCursor: "older" }),
    ),
  );
  const { user } = open(address);
  await user.click(await screen.findByRole("button", { name: "Load older changes" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("Not loaded. The cursor is invalid");
});
