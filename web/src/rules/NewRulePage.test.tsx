import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { api, open, problem, startWorld } from "../test/world";

const { server } = startWorld();

test("a refused rule shows the API's words beside the fields", async () => {
  server.use(
    http.post(api("/rules"), () =>
      problem(400, {
        detail: "The rule is not valid.",
        errors: [
          { field: "name", code: "required", message: "Give the rule a name." },
          { field: "scope.applications[0]", code: "too_long", message: "At most 200 characters." },
          { field: "lookBackSeconds", code: "out_of_range", message: "Must be less than the retention." },
        ],
      }),
    ),
  );
  const { user } = open("/rules/new");
  await user.click(await screen.findByRole("button", { name: "Create the rule" }));
  await waitFor(() => expect(screen.getByLabelText("Name")).toHaveAccessibleDescription("Give the rule a name."));
  expect(screen.getByText("At most 200 characters.")).toBeVisible();
  expect(screen.getByRole("alert")).toHaveTextContent("lookBackSeconds: Must be less than the retention.");
});

test("a rule is read back in words and sent as the API wants it", async () => {
  let sent: unknown;
  server.use(
    http.get(api("/webhooks"), () =>
      HttpResponse.json({ items: [{ id: "w1", name: "#ops", kind: "slack", enabled: true }] }),
    ),
    http.post(api("/rules"), async ({ request }) => {
      sent = await request.json();
      return HttpResponse.json({ id: "r1", name: "Orders" }, { status: 201 });
    }),
  );
  const { user, router } = open("/rules/new");
  await user.type(await screen.findByLabelText("Name"), "Orders");
  await user.type(screen.getByLabelText("Applications", { selector: "input" }), "orders{Enter}");
  await user.click(await screen.findByLabelText("#ops"));
  expect(screen.getByText("Whenever an exchange of orders fails, tell #ops once.")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Create the rule" }));
  await waitFor(() => expect(router.state.location.href).toBe("/rules#r1"));
  expect(sent).toEqual({
    name: "Orders",
    severity: "CRITICAL",
    fireMode: "PER_EXCHANGE",
    scope: { environments: [], applications: ["orders"], routes: [] },
    filter: { statuses: ["FAILED"] },
    titleTemplate: "",
    messageTemplate: "",
    webhookIds: ["w1"],
  });
});
