import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import type { RuleDefinition } from "../api/client";
import { aRule } from "../test/rules";
import { anAlert, api, open, paste, startWorld } from "../test/world";

const { world, server } = startWorld();
const rule = aRule();
const alert = anAlert(60, { ruleId: rule.id, ruleName: rule.name, errorPattern: String.raw`^ERP\s+refused` });
alert.exchange.attributes = { customer: "42" };
let saved: { method: string; definition: RuleDefinition } | undefined;

beforeEach(() => {
  saved = undefined;
  world.alerts = [alert];
  const keep = async ({ request }: { request: Request }) => {
    saved = { method: request.method, definition: (await request.json()) as RuleDefinition };
    return HttpResponse.json({ ...rule, ...saved.definition });
  };
  server.use(
    http.get(api("/rules/:id"), () => HttpResponse.json(rule)),
    http.put(api("/rules/:id"), keep),
    http.post(api("/rules"), keep),
  );
});

test("one click on an alert opens its rule with the error left out", async () => {
  const { user } = open(`/inbox/${alert.id}`);
  await user.click(await screen.findByRole("link", { name: "Exclude this error" }));
  expect(await screen.findByText(/everything but this error. Nothing has been saved/)).toBeVisible();
  expect(screen.getByText(alert.errorPattern ?? "")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Save rule" }));
  await waitFor(() => expect(saved?.method).toBe("PUT"));
  expect(saved?.definition.filter?.errorMessageNotMatches).toEqual([alert.errorPattern]);
  expect(saved?.definition.name).toBe(rule.name);
});

test("a rule for one customer becomes a new rule, and the rule of the alert stays", async () => {
  const { user } = open(`/inbox/${alert.id}`);
  await user.click(await screen.findByRole("link", { name: "Match only this value of customer" }));
  await user.click(await screen.findByRole("link", { name: "Create new rule instead" }));
  await waitFor(() => expect(screen.getByLabelText("Name")).toHaveValue(`${rule.name}: only customer = 42`));
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(saved?.method).toBe("POST"));
  expect(saved?.definition.filter?.attributes).toEqual([{ key: "customer", op: "EQUALS", value: "42" }]);
});

test("a value that was cut, or is not text, leads to no rule", async () => {
  const cut = { ...alert.exchange, attributes: { customer: "42", body: "<order>…", name: "caf\uFFFD" } };
  world.alerts = [{ ...alert, exchange: cut }];
  open(`/inbox/${alert.id}`);
  expect(await screen.findByRole("link", { name: "Match only this value of customer" })).toBeVisible();
  expect(screen.getByText("<order>…")).toBeVisible();
  expect(screen.queryByRole("link", { name: /Match only this value of (body|name)/ })).toBeNull();
});

test("labels, team and note are written in the editor, and shown on its alerts", async () => {
  const { user, unmount } = open(`/rules/${rule.id}/edit`);
  await paste(user, await screen.findByLabelText("Owner"), "integration");
  await paste(user, screen.getByLabelText("Runbook"), "wiki.example");
  await user.type(screen.getByLabelText("Labels", { selector: "input" }), "service=desk{Enter}");
  await paste(user, screen.getByLabelText("Note"), "Ask ERP first.");
  expect(screen.getByLabelText("Runbook")).toHaveAccessibleDescription(/Must be a URL/);
  await user.clear(screen.getByLabelText("Runbook"));
  await paste(user, screen.getByLabelText("Runbook"), "https://wiki.example/orders");
  await user.click(screen.getByRole("button", { name: "Save rule" }));
  await waitFor(() => expect(saved).toBeDefined());
  const about = { owner: "integration", runbookUrl: "https://wiki.example/orders", note: "Ask ERP first." };
  expect(saved?.definition).toMatchObject({ ...about, labels: { service: "desk" } });
  unmount();
  world.alerts = [{ ...alert, ...about, labels: { service: "desk" } }];
  open(`/inbox/${alert.id}`);
  expect(await screen.findByRole("link", { name: /Open runbook/ })).toHaveAttribute("href", about.runbookUrl);
  expect(screen.getByText("Ask ERP first.")).toBeVisible();
  expect(screen.getByText("desk")).toBeVisible();
});
