import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { anAlert, api, open, problem, startWorld } from "../test/world";

const { world, server } = startWorld();
const ruleId = (n: number) => `0192f0c1-0000-7000-8000-00000000090${n}`;

test("an alert leads to what other rules make of its exchange", async () => {
  const alert = anAlert(60);
  world.alerts = [alert];
  let asked: URLSearchParams | undefined;
  server.use(
    http.get(api("/exchanges/explain"), ({ request }) => {
      asked = new URL(request.url).searchParams;
      return HttpResponse.json({
        exchange: alert.exchange,
        counts: [
          { verdict: "ALERTED", rules: 1 },
          { verdict: "NOT_ARMED", rules: 1 },
          { verdict: "NOT_MATCHED", rules: 1 },
        ],
        rules: [
          { ruleId: ruleId(1), ruleName: "Orders", verdict: "ALERTED", detail: "It has an alert.", alertId: alert.id },
          { ruleId: ruleId(3), ruleName: "Stock", verdict: "NOT_ARMED", detail: "Not armed.", unmet: ["scope.routes"] },
          {
            ruleId: ruleId(2),
            ruleName: "Billing",
            verdict: "NOT_MATCHED",
            detail: "It does not meet the condition.",
            unmet: ["scope.applications", "filter.attributes[0]"],
          },
        ],
      });
    }),
  );
  const { user } = open(`/inbox/${alert.id}`);
  await user.click(await screen.findByRole("link", { name: "Explain for all rules" }));
  const explained = await screen.findByRole("region", { name: "Explanation" });
  expect(asked?.get("executionId")).toBe(alert.exchange.executionId);
  expect(asked?.get("startTime")).toBe(alert.exchange.startTime);
  expect(within(explained).getByRole("row", { name: /Orders Alerted It has an alert. Open alert/ })).toBeVisible();
  expect(within(explained).queryByText("Billing")).toBeNull();
  expect(within(explained).queryByText("Stock")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Show 2 rules without a match" }));
  expect(screen.getByRole("row", { name: /Stock Not armed .* Not met: route\./ })).toBeVisible();
  expect(screen.getByRole("row", { name: /Billing No match .* Not met: application, attribute 1\./ })).toBeVisible();
});

test("a missing exchange is reported, and another one can be entered", async () => {
  const asked: (string | null)[][] = [];
  server.use(
    http.get(api("/exchanges/explain"), ({ request }) => {
      const { searchParams } = new URL(request.url);
      asked.push([searchParams.get("executionId"), searchParams.get("hours")]);
      return problem(404, { code: "not_found", detail: "no exchange with this id" });
    }),
  );
  // If an alert is missing, the way to this page cannot lead through an alert.
  const { user } = open("/rules");
  await user.click(await screen.findByRole("link", { name: "Explain an exchange" }));
  await waitFor(() => expect(document.title).toBe("Explain · Tocsin"));
  await user.type(await screen.findByLabelText("Execution ID"), "a/b c{Enter}");
  expect(await screen.findByRole("alert")).toBeVisible();
  await waitFor(() => expect(asked).toEqual([["a/b c", null]]));
  // It may be older.
  await user.selectOptions(screen.getByLabelText("Started in the"), "last 7 d");
  await user.click(screen.getByRole("button", { name: "Explain" }));
  await waitFor(() => expect(asked[1]).toEqual(["a/b c", "168"]));
  expect(screen.getByLabelText("Started in the")).toHaveDisplayValue("last 7 d");
  expect(screen.getByLabelText("Execution ID")).toHaveValue("a/b c");
});

test("an exchange without an environment is named without one", async () => {
  const exchange = { ...anAlert(60).exchange, environment: "" };
  server.use(http.get(api("/exchanges/explain"), () => HttpResponse.json({ exchange, counts: [], rules: [] })));
  open(`/explain?executionId=${exchange.executionId}`);
  const explained = await screen.findByRole("region", { name: "Explanation" });
  expect(explained).toHaveTextContent(`${exchange.route}, ${exchange.status}, started`);
});
