import { screen } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { RuleDefinition } from "../api/client";
import { aRule, noDifference } from "../test/rules";
import { anAlert, api, open, startWorld } from "../test/world";
import { differenceWords } from "./DifferencePane";

const { server } = startWorld();

test("an edit of what the rule raises shows what it would have changed, and no other edit does", async () => {
  const asked: RuleDefinition[] = [];
  const added = { alerts: 7, newest: [anAlert(60, { title: "billing failed", message: "IBAN" })] };
  server.use(
    http.get(api("/rules/:id"), () => HttpResponse.json(aRule())),
    http.post(api("/rules/:id/preview/difference"), async ({ request }) => {
      asked.push(((await request.json()) as { definition: RuleDefinition }).definition);
      return HttpResponse.json({ ...noDifference, before: 3, after: 9, added, removed: { alerts: 1, newest: [] } });
    }),
  );
  const { user } = open(`/rules/${aRule().id}/edit`);
  await user.type(await screen.findByLabelText("Name"), "!");
  await user.type(screen.getByLabelText("Owner"), "me");
  expect(screen.queryByText("What this edit would have changed")).toBeNull();
  await user.type(screen.getByLabelText("Except routes", { selector: "input" }), "health{Enter}");
  expect(await screen.findByText("3 alerts would become 9: 7 added, 1 removed.")).toBeVisible();
  expect(screen.getByText("billing failed")).toBeVisible();
  expect(screen.getByText("and 6 more")).toBeVisible();
  expect(asked.at(-1)?.scope?.notRoutes).toEqual(["health"]);
  expect(asked.at(-1)?.name).toBe(aRule().name);
});

test("an edit that changes nothing says so", () => {
  const none = { alerts: 0, newest: [] };
  expect(differenceWords({ ...noDifference, before: 1, after: 1, added: none, removed: none })).toBe(
    "The same 1 alert.",
  );
});
