import { fireEvent, screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { aRule } from "../test/rules";
import { api, open, paste, problem, startWorld } from "../test/world";

const { server } = startWorld();

test("a rule that cannot be evaluated says why, and is evaluated again at a press", async () => {
  const rule = {
    id: "r1",
    name: "Failed orders",
    enabled: true,
    fireMode: "PER_EXCHANGE",
    severity: "CRITICAL",
    scope: {},
    filter: {},
    webhookIds: [],
  };
  let health: object = { lastError: "ClickHouse cannot be reached", lastErrorAt: "2026-11-21T07:02:00Z" };
  server.use(
    http.get(api("/rules"), () => HttpResponse.json({ items: [{ ...rule, health }] })),
    http.post(api("/rules/:id/retry"), ({ params }) => {
      if (params.id === "r1") health = { lagSeconds: 1, backfillFrom: "2026-11-21T06:01:07Z" };
      return HttpResponse.json(rule);
    }),
  );
  const { user } = open("/rules");
  expect(await screen.findByText("Cannot be evaluated: ClickHouse cannot be reached")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Evaluate Failed orders now" }));
  expect(await screen.findByText("1 s behind")).toBeVisible();
  expect(screen.getByText(/^Backfill from/)).toBeVisible();
  expect(screen.queryByText(/Not evaluated/)).toBeNull();
});

test("rules are searched and sorted by the address, and several are disabled at once", async () => {
  const rules = [
    aRule({ id: "a", name: "Orders" }),
    aRule({ id: "b", name: "Billing" }),
    aRule({ id: "c", name: "Bills" }),
  ];
  const disabled: string[] = [];
  server.use(
    http.get(api("/rules"), () => HttpResponse.json({ items: rules })),
    http.post(api("/rules/:id/disable"), ({ params }) => {
      disabled.push(String(params.id));
      if (params.id === "c") return problem(503, { title: "Away", code: "unavailable" });
      return HttpResponse.json(rules[0]);
    }),
  );
  const { user, router } = open("/rules");
  const names = () => screen.getAllByRole("row").flatMap((row) => within(row).queryAllByRole("link").slice(0, 1));
  const said = () => names().map((link) => link.textContent);
  await screen.findByRole("link", { name: "Orders" });
  expect(said()).toEqual(["Billing", "Bills", "Orders"]);
  await user.click(screen.getByRole("button", { name: "Rule" }));
  expect(said()).toEqual(["Orders", "Bills", "Billing"]);
  expect(screen.getByRole("columnheader", { name: /^Rule/ })).toHaveAttribute("aria-sort", "descending");
  await paste(user, screen.getByRole("searchbox", { name: "Search rules" }), "bill");
  expect(said()).toEqual(["Bills", "Billing"]);
  expect(router.state.location.search).toEqual({ q: "bill", reverse: "yes" });
  await user.click(screen.getByRole("checkbox", { name: "Select all rules" }));
  await user.click(screen.getByRole("button", { name: "Disable 2 rules" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Disable 2 rules?" }));
  expect(dialog.queryByText(/shown on this page/)).toBeNull();
  expect(disabled).toEqual([]);
  await user.click(dialog.getByRole("button", { name: "Disable 2 rules" }));
  expect(await screen.findByText(/^1 rule disabled\. Not disabled: “Bills”/)).toBeVisible();
  expect(disabled.sort()).toEqual(["b", "c"]);
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("of many rules the first are shown, and the others at a press and by the search", async () => {
  const rules = Array.from({ length: 130 }, (_, at) =>
    aRule({ id: `r${at}`, name: `Rule ${String(at).padStart(3, "0")}` }),
  );
  server.use(http.get(api("/rules"), () => HttpResponse.json({ items: rules })));
  const { user } = open("/rules");
  expect(await screen.findByText("130 rules")).toBeVisible();
  const shown = () => screen.getAllByRole("row").length - 1;
  expect(shown()).toBe(100);
  await user.click(screen.getByRole("button", { name: "Show 30 more of 130 rules" }));
  expect(shown()).toBe(130);
  expect(screen.queryByRole("button", { name: /^Show/ })).toBeNull();
  fireEvent.change(screen.getByRole("searchbox", { name: "Search rules" }), { target: { value: "Rule 129" } });
  expect(await screen.findByText("1 of 130 rules")).toBeVisible();
});

test("to disable rules asks first, with those that the page does not show, and names few of many errors", async () => {
  const rules = Array.from({ length: 107 }, (_, at) =>
    aRule({ id: `r${at}`, name: `Rule ${String(at).padStart(3, "0")}` }),
  );
  let asked = 0;
  server.use(
    http.get(api("/rules"), () => HttpResponse.json({ items: rules })),
    http.post(api("/rules/:id/disable"), () => {
      asked += 1;
      return asked <= 100 ? HttpResponse.json(rules[0]) : problem(403, { code: "forbidden" });
    }),
  );
  const { user } = open("/rules");
  await screen.findByText("107 rules");
  await user.click(screen.getByRole("checkbox", { name: "Select all rules" }));
  const ask = async () => {
    await user.click(screen.getByRole("button", { name: "Disable 107 rules" }));
    return within(await screen.findByRole("dialog", { name: "Disable 107 rules?" }));
  };
  const first = await ask();
  expect(first.getByText(/^Not shown on this page: 7 of them\./)).toBeVisible();
  await user.click(first.getByRole("button", { name: "Cancel" }));
  expect(screen.queryByRole("dialog")).toBeNull();
  expect(asked).toBe(0);
  const second = await ask();
  await user.click(second.getByRole("button", { name: "Disable 107 rules" }));
  const said = await screen.findByText(/^100 rules disabled\. Not disabled: /, undefined, { timeout: 8_000 });
  expect(said.textContent?.match(/“Rule/g)).toHaveLength(5);
  expect(said).toHaveTextContent(/ And 2 more\.$/);
});

test("a search is edited in its middle", async () => {
  server.use(http.get(api("/rules"), () => HttpResponse.json({ items: [aRule({ name: "Orders" })] })));
  const { user } = open("/rules?q=oders");
  const field = await screen.findByRole<HTMLInputElement>("searchbox", { name: "Search rules" });
  field.focus();
  field.setSelectionRange(1, 1);
  await user.keyboard("r");
  await user.keyboard("r");
  expect(field).toHaveValue("orrders");
  expect(field.selectionStart).toBe(3);
});
