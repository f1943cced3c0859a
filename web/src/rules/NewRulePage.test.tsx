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

test("a counting rule is read back in words; what does not apply to it is neither shown nor sent", async () => {
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
  const { user } = open("/rules/new");
  await user.type(await screen.findByLabelText("Name"), "Orders");
  const reason = "Per-exchange rules fire exactly once — re-notify does not apply.";
  expect(screen.getByText(reason)).toBeVisible();
  expect(screen.queryByLabelText("Remind each")).toBeNull();

  await user.click(screen.getByRole("radio", { name: "A number of exchanges" }));
  expect(screen.queryByText(reason)).toBeNull();
  await user.clear(screen.getByLabelText("Threshold"));
  await user.type(screen.getByLabelText("Threshold"), "7");
  await user.clear(screen.getByLabelText("Window"));
  await user.type(screen.getByLabelText("Window"), "2");
  await user.selectOptions(screen.getByLabelText("Unit of Window"), "h");
  await user.selectOptions(screen.getByLabelText("Count"), "Each application for itself");
  await user.clear(screen.getByLabelText("Remind each"));
  await user.type(screen.getByLabelText("Remind each"), "30");
  await user.click(await screen.findByLabelText("#ops"));
  expect(
    screen.getByText(
      "Whenever at least 7 exchanges fail within 2 h of one application, tell #ops; again each 30 min until acknowledged; and when it is over.",
    ),
  ).toBeVisible();
  expect(screen.getByLabelText("Title")).toHaveAttribute(
    "placeholder",
    "{{count.group}}: {{count.observed}} exchanges within {{count.window}}",
  );
  const counting = {
    fireMode: "COUNT_IN_WINDOW",
    threshold: 7,
    windowSeconds: 7200,
    groupBy: "APPLICATION",
    forDurationSeconds: 0,
    reNotifyMinutes: 30,
    notifyOnResolve: true,
  };
  await user.click(screen.getByRole("button", { name: "Create the rule" }));
  await waitFor(() => expect(sent).toMatchObject(counting));
});

test("a refused counting rule shows the API's words beside its fields", async () => {
  let sent: Record<string, unknown> = {};
  server.use(
    http.post(api("/rules"), async ({ request }) => {
      sent = (await request.json()) as typeof sent;
      return problem(400, {
        errors: [
          { field: "threshold", code: "out_of_range", message: "Must be at least 1" },
          { field: "windowSeconds", code: "out_of_range", message: "Must be from 10 to 86400" },
        ],
      });
    }),
  );
  const { user } = open("/rules/new");
  await user.click(await screen.findByRole("radio", { name: "A number of exchanges" }));
  await user.clear(screen.getByLabelText("Threshold"));
  await user.clear(screen.getByLabelText("Window"));
  await user.click(screen.getByRole("button", { name: "Create the rule" }));
  await waitFor(() => expect(screen.getByLabelText("Threshold")).toHaveAccessibleDescription(/Must be at least 1/));
  expect(screen.getByLabelText("Window")).toHaveAccessibleDescription(/Must be from 10 to 86400/);
  expect(screen.getByLabelText("Window")).toBeInvalid();
  expect(sent).not.toHaveProperty("threshold");
  expect(sent).not.toHaveProperty("windowSeconds");
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
