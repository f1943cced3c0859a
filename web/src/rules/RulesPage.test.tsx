import { screen } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { api, open, startWorld } from "../test/world";

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
  expect(screen.getByText(/^Catching up from/)).toBeVisible();
  expect(screen.queryByText(/Not evaluated/)).toBeNull();
});
