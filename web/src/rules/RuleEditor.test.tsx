import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { Rule, RuleDefinition } from "../api/client";
import { aRule, noPreview } from "../test/rules";
import { api, open, paste, problem, startWorld } from "../test/world";

const { server } = startWorld();

test("what is plainly wrong is said in the API's words, without asking it", async () => {
  const { user } = open("/rules/new");
  await user.click(await screen.findByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(screen.getByLabelText("Name")).toHaveAccessibleDescription("Must not be empty"));
  expect(screen.getByLabelText("Name")).toHaveFocus();
});

test.each([
  [true, "“Failed orders” was created."],
  [false, "“Failed orders” was created, but is disabled."],
])("a rule that is made and enabled (%s) is summarized", async (enabled, said) => {
  server.use(
    http.post(api("/rules"), async ({ request }) =>
      HttpResponse.json(aRule((await request.json()) as Partial<Rule>), { status: 201 }),
    ),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Failed orders");
  if (!enabled) await user.click(screen.getByLabelText(/^Enabled/));
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  expect(await screen.findByText(said)).toBeVisible();
});

test("a rule whose preview is refused because it is too long says so, and can be saved", async () => {
  const message = "Is too long for ClickHouse: use fewer names";
  server.use(
    http.post(api("/rules/preview"), () =>
      problem(400, { errors: [{ field: "definition.scope", code: "query_too_long", message }] }),
    ),
    http.post(api("/rules"), () => HttpResponse.json(aRule(), { status: 201 })),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Failed orders");
  expect(await screen.findByText(`Definition, scope: ${message}`)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  expect(await screen.findByText(/was created/)).toBeVisible();
});

test("a refused rule shows the API's words beside the fields", async () => {
  server.use(
    http.post(api("/rules"), () =>
      problem(400, {
        detail: "The rule is not valid.",
        errors: [
          { field: "name", code: "required", message: "There is such a name." },
          { field: "scope.applications[0]", code: "too_long", message: "At most 200 characters." },
          { field: "perExchangeLingerSeconds", code: "unknown_field", message: "Unknown field" },
        ],
      }),
    ),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Orders");
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(screen.getByLabelText("Name")).toHaveAccessibleDescription("There is such a name."));
  expect(screen.getByText("At most 200 characters.")).toBeVisible();
  expect(screen.getByRole("alert")).toHaveTextContent("Per exchange linger seconds: Unknown field");
  await user.type(screen.getByLabelText("Name"), "!");
  expect(screen.getByLabelText("Name")).not.toHaveAccessibleDescription("There is such a name.");
});

test("a window rule is read back in words; what does not apply to it is neither shown nor sent", async () => {
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
  await paste(user, await screen.findByLabelText("Name"), "Orders");
  const reason = "Rules about single exchanges fire at once and send no reminders.";
  expect(screen.getByText(reason)).toBeVisible();
  expect(screen.queryByLabelText("Remind every")).toBeNull();

  await user.click(screen.getByRole("radio", { name: "A number of exchanges" }));
  expect(screen.queryByText(reason)).toBeNull();
  await user.clear(screen.getByLabelText("Threshold"));
  await user.type(screen.getByLabelText("Threshold"), "7");
  await user.clear(screen.getByLabelText("Window"));
  await user.type(screen.getByLabelText("Window"), "90");
  await user.selectOptions(screen.getByLabelText("Unit of Window"), "h");
  expect(screen.getByLabelText("Window")).toHaveValue(1.5);
  await user.selectOptions(screen.getByLabelText("Unit of Window"), "s");
  expect(screen.getByLabelText("Window")).toHaveValue(5400);
  await user.selectOptions(screen.getByLabelText("Group by"), "Application");
  await user.clear(screen.getByLabelText("Remind every"));
  await user.type(screen.getByLabelText("Remind every"), "30");
  await user.click(await screen.findByLabelText("#ops"));
  expect(
    screen.getByText(
      "Whenever at least 7 exchanges fail within 1 h 30 min of one application, notify #ops; again every 30 min until acknowledged; and when it is over.",
    ),
  ).toBeVisible();
  expect(screen.getByLabelText("Title")).toHaveAttribute(
    "placeholder",
    "{{count.group}}: {{count.observed}} exchanges within {{count.window}}",
  );
  const counting = {
    fireMode: "COUNT_IN_WINDOW",
    threshold: 7,
    windowSeconds: 5400,
    groupBy: "APPLICATION",
    forDurationSeconds: 0,
    reNotifyMinutes: 30,
    notifyOnResolve: true,
  };
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toMatchObject(counting));
});

test("a window rule without its numbers is not sent", async () => {
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Orders");
  await user.click(screen.getByRole("radio", { name: "A number of exchanges" }));
  await user.clear(screen.getByLabelText("Threshold"));
  await user.clear(screen.getByLabelText("Window"));
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(screen.getByLabelText("Threshold")).toHaveAccessibleDescription(/Must be at least 1/));
  expect(screen.getByLabelText("Window")).toHaveAccessibleDescription(/Must be from 10 to 86400/);
  expect(screen.getByLabelText("Window")).toBeInvalid();
});

test("a count for each value of an attribute names the attribute", async () => {
  const sent: unknown[] = [];
  server.use(
    http.post(api("/rules"), async ({ request }) => {
      sent.push(await request.json());
      return problem(409, { detail: "the name is taken" });
    }),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Customers");
  await user.click(screen.getByRole("radio", { name: "A number of exchanges" }));
  expect(screen.queryByRole("combobox", { name: "Attribute" })).toBeNull();
  await user.selectOptions(screen.getByLabelText("Group by"), "Attribute value");
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() =>
    expect(screen.getByRole("combobox", { name: "Attribute" })).toHaveAccessibleDescription(/Name the attribute/),
  );
  expect(sent).toHaveLength(0);
  await paste(user, screen.getByRole("combobox", { name: "Attribute" }), "customer");
  expect(screen.getByText(/within 10 min with one value of customer, /)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({ groupBy: "ATTRIBUTE", groupByAttribute: "customer" });
  await user.selectOptions(screen.getByLabelText("Group by"), "Route");
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]).not.toHaveProperty("groupByAttribute");
});

test("a ratio and a percentile are sent with their own numbers", async () => {
  const sent: unknown[] = [];
  server.use(
    http.post(api("/rules"), async ({ request }) => {
      sent.push(await request.json());
      return problem(409, { detail: "the name is taken" });
    }),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Orders");
  await user.click(screen.getByRole("radio", { name: "A failure ratio" }));
  await user.clear(screen.getByLabelText("Ratio"));
  await paste(user, screen.getByLabelText("Ratio"), "12.5");
  await user.clear(screen.getByLabelText("Minimum volume"));
  await user.type(screen.getByLabelText("Minimum volume"), "50");
  expect(
    screen.getByText(/^Whenever at least 12.5% of exchanges fail within 10 min with at least 50 exchanges/),
  ).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({ fireMode: "RATIO_IN_WINDOW", percent: 12.5, minVolume: 50, windowSeconds: 600 });
  expect(sent[0]).not.toHaveProperty("threshold");
  expect(sent[0]).not.toHaveProperty("shortWindowSeconds");
  await user.click(screen.getByRole("radio", { name: "Slow exchanges" }));
  expect(
    screen.getByText(/^Whenever the p95 duration of exchanges that end is 2 s or more within 10 min/),
  ).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]).toMatchObject({
    ...{ fireMode: "DURATION_IN_WINDOW", percentile: 95, durationMs: 2000, minVolume: 50 },
    filter: { statuses: ["COMPLETED", "FAILED"] },
  });
});

test("what resolves alerts is sent as it is chosen", async () => {
  const sent: unknown[] = [];
  server.use(
    http.post(api("/rules"), async ({ request }) => {
      sent.push(await request.json());
      return problem(409, { detail: "the name is taken" });
    }),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Refused orders");
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).not.toHaveProperty("resolution");
  expect(sent[0]).not.toHaveProperty("notifyOnResolve");
  await user.click(screen.getByLabelText(/^Resolve open alerts/));
  expect(screen.getByText(/the alert resolves after 7 d\.$/)).toBeVisible();
  await user.selectOptions(screen.getByLabelText("Resolve when this completes"), "Same route and attribute");
  await user.clear(screen.getByLabelText("Resolve after"));
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() =>
    expect(screen.getByRole("combobox", { name: "Attribute" })).toHaveAccessibleDescription("Must not be empty"),
  );
  expect(sent).toHaveLength(1);
  await paste(user, screen.getByRole("combobox", { name: "Attribute" }), "orderId");
  await user.click(screen.getByLabelText(/^Send a message when an alert resolves/));
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]).toMatchObject({ resolution: { evidence: "ATTRIBUTE", attribute: "orderId" }, notifyOnResolve: true });
  expect(sent[1]).not.toHaveProperty("resolution.afterSeconds");
});

test("an absence is sent with what is expected and when", async () => {
  const sent: unknown[] = [];
  server.use(
    http.post(api("/rules"), async ({ request }) => {
      sent.push(await request.json());
      return problem(409, { detail: "the name is taken" });
    }),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Silent routes");
  await user.click(screen.getByRole("radio", { name: "Missing exchanges" }));
  await user.selectOptions(screen.getByLabelText("Group by"), "Route");
  expect(screen.queryByRole("option", { name: "Error type" })).toBeNull();
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({
    ...{ fireMode: "ABSENT_IN_WINDOW", threshold: 5, groupBy: "ROUTE", learnDays: 7 },
    filter: { statuses: ["COMPLETED", "FAILED"] },
  });
  expect(sent[0]).not.toHaveProperty("calendar");
  await user.click(screen.getByRole("radio", { name: "A fixed list" }));
  await user.click(screen.getByLabelText("Expect exchanges only during certain hours"));
  await user.click(screen.getByLabelText("Mon"));
  await user.clear(screen.getByLabelText("Time zone"));
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() =>
    expect(screen.getByLabelText("Time zone")).toHaveAccessibleDescription(/Must be a time zone such as Europe/),
  );
  await paste(user, screen.getByLabelText("Time zone"), "Europe/Berlin");
  await user.type(screen.getByLabelText("List of routes"), "order-to-erp{Enter}");
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]).toMatchObject({
    expected: ["order-to-erp"],
    calendar: { timeZone: "Europe/Berlin", weekdays: ["TUE", "WED", "THU", "FRI"], from: "08:00", to: "18:00" },
  });
  expect(sent[1]).not.toHaveProperty("learnDays");
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
  await paste(user, await screen.findByLabelText("Name"), "Orders");
  await user.type(screen.getByLabelText("Applications", { selector: "input" }), "orders{Enter}");
  await user.click(await screen.findByLabelText("#ops"));
  expect(screen.getByText("Whenever an exchange of orders fails, notify #ops once.")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(router.state.location.href).toBe("/rules#r1"));
  expect(sent).toEqual({
    name: "Orders",
    enabled: true,
    severity: "CRITICAL",
    intervalSeconds: 1,
    lookBackSeconds: 3600,
    targets: [],
    fireMode: "PER_EXCHANGE",
    scope: { applications: ["orders"] },
    filter: { statuses: ["FAILED"] },
    titleTemplate: "",
    messageTemplate: "",
    webhookIds: ["w1"],
  });
});

test("suggestions do not open over the error of their field when the form is refused", async () => {
  server.use(
    http.get(api("/exchanges/facets"), () => HttpResponse.json({ items: [{ value: "order-intake", count: 7 }] })),
    http.post(api("/rules/preview"), () => HttpResponse.json(noPreview)),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Orders");
  await user.click(screen.getByText("Missing exchanges"));
  await user.selectOptions(screen.getByLabelText("Group by"), "Route");
  await user.click(screen.getByText("A fixed list"));
  const list = screen.getByLabelText("List of routes", { selector: "input" });
  await user.click(list);
  expect(await screen.findByRole("option", { name: /order-intake/ })).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(list).toHaveFocus());
  await waitFor(() => expect(screen.queryByRole("option", { name: /order-intake/ })).toBeNull());
  await user.keyboard("o");
  expect(await screen.findByRole("option", { name: /order-intake/ })).toBeVisible();
});

test("every part of the filter is sent, and errors are shown beside it", async () => {
  let sent: unknown;
  server.use(
    http.post(api("/rules"), async ({ request }) => {
      sent = await request.json();
      return HttpResponse.json(aRule(), { status: 201 });
    }),
    http.get(api("/exchanges/facets"), ({ request }) => {
      const field = new URL(request.url).searchParams.get("field");
      return HttpResponse.json({ items: field === "errorType" ? [{ value: "java.io.IOException", count: 7 }] : [] });
    }),
    http.post(api("/rules/preview"), async ({ request }) => {
      const asked = (await request.json()) as { definition: { filter: { errorMessageMatches?: string } } };
      if (asked.definition.filter.errorMessageMatches !== "(") return HttpResponse.json(noPreview);
      const field = "definition.filter.errorMessageMatches";
      return problem(400, { errors: [{ field, code: "regexp", message: "Must be a valid RE2 expression" }] });
    }),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Orders");
  await user.click(screen.getByLabelText("Error types", { selector: "input" }));
  await user.click(await screen.findByRole("option", { name: /IOException/ }));
  await user.type(screen.getByLabelText("Error message matches"), "(");
  await waitFor(() =>
    expect(screen.getByLabelText("Error message matches")).toHaveAccessibleDescription(
      /Must be a valid RE2 expression/,
    ),
  );
  expect(screen.getByText(/to see the preview/)).toBeVisible();
  await user.clear(screen.getByLabelText("Error message matches"));
  await user.type(screen.getByLabelText("Minimum duration"), "2");
  await user.type(screen.getByLabelText("Maximum duration"), "1");
  expect(screen.getByLabelText("Maximum duration")).toHaveAccessibleDescription(
    "Must not be below the minimum duration, because no exchange could match",
  );
  await user.clear(screen.getByLabelText("Maximum duration"));
  await user.click(screen.getByRole("button", { name: "Add attribute" }));
  await waitFor(() => expect(screen.getByRole("combobox", { name: "Key 1" })).toHaveFocus());
  await user.keyboard("customer");
  await paste(user, screen.getByLabelText("Value 1"), "ACME");
  await user.click(screen.getByRole("button", { name: "Add attribute" }));
  await paste(user, screen.getByRole("combobox", { name: "Key 2" }), "order");
  await user.selectOptions(screen.getByLabelText("Comparison 2"), "exists");
  expect(screen.queryByLabelText("Value 2")).toBeNull();
  await user.type(screen.getByLabelText("Teams", { selector: "input" }), "integration{Enter}");
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toBeDefined());
  expect(sent).toMatchObject({
    filter: {
      statuses: ["FAILED"],
      errorTypes: ["java.io.IOException"],
      minDurationMs: 2000,
      attributes: [
        { key: "customer", op: "EQUALS", value: "ACME" },
        { key: "order", op: "EXISTS" },
      ],
    },
    targets: [{ kind: "team", name: "integration" }],
  });
});

test("what is excluded, and each comparison of an attribute, is sent as the API names it", async () => {
  let sent: RuleDefinition | undefined;
  server.use(
    http.post(api("/rules"), async ({ request }) => {
      sent = (await request.json()) as RuleDefinition;
      return HttpResponse.json(aRule(), { status: 201 });
    }),
  );
  const { user } = open("/rules/new");
  await paste(user, await screen.findByLabelText("Name"), "Orders");
  for (const [label, text] of [
    ["Except routes", "health-*"],
    ["Except error types", "Cancelled"],
    ["Error message does not contain", "retry, later"],
    ["Error message does not match", "^busy"],
  ] as const) {
    await user.type(screen.getByLabelText(label, { selector: "input" }), `${text}{Enter}`);
  }
  const attribute = async (at: number, key: string, comparison: string) => {
    await user.click(screen.getByRole("button", { name: "Add attribute" }));
    await user.type(screen.getByRole("combobox", { name: `Key ${at}` }), key);
    await user.selectOptions(screen.getByLabelText(`Comparison ${at}`), comparison);
  };
  await attribute(1, "customer", "does not equal");
  await paste(user, screen.getByLabelText("Value 1"), "ACME");
  expect(screen.getByText(/also matches exchanges without the attribute/)).toBeVisible();
  await attribute(2, "region", "is one of");
  await user.type(screen.getByLabelText("Values 2"), "eu{Enter}us{Enter}");
  await attribute(3, "amount", "≥");
  await paste(user, screen.getByLabelText("Value 3"), "many");
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  expect(screen.getByLabelText("Value 3")).toHaveAccessibleDescription(/Must be a decimal number/);
  await user.clear(screen.getByLabelText("Value 3"));
  await paste(user, screen.getByLabelText("Value 3"), "99.5");
  await user.click(screen.getByRole("button", { name: "Create rule" }));
  await waitFor(() => expect(sent).toBeDefined());
  expect(sent).toMatchObject({
    scope: { notRoutes: ["health-*"] },
    filter: {
      notErrorTypes: ["Cancelled"],
      errorMessageNotContains: ["retry, later"],
      errorMessageNotMatches: ["^busy"],
      attributes: [
        { key: "customer", not: true, op: "EQUALS", value: "ACME" },
        { key: "region", op: "IN", values: ["eu", "us"] },
        { key: "amount", op: "AT_LEAST", value: "99.5" },
      ],
    },
  });
});

test("a variable is offered within braces, and the API's error about a template is shown beside it", async () => {
  const refusal = 'Unknown variable "exchange.rout" (line 1, column 1)';
  server.use(
    http.post(api("/templates/preview"), async ({ request }) => {
      const { titleTemplate } = (await request.clone().json()) as { titleTemplate: string };
      if (!titleTemplate.includes("exchange.rout}}")) return undefined;
      return problem(400, { errors: [{ field: "titleTemplate", code: "template", message: refusal }] });
    }),
  );
  const { user } = open("/rules/new");
  const title = await screen.findByLabelText("Title");
  await user.type(title, "{{{{exchange.rou");
  expect(screen.getByRole("option", { name: /exchange.route/ })).toHaveAttribute("aria-selected", "true");
  await user.keyboard("{Enter} failed");
  expect(title).toHaveValue("{{exchange.route}} failed");
  expect(screen.queryByRole("listbox", { name: "Variables" })).toBeNull();
  await user.clear(title);
  await user.type(title, "{{{{exchange.rout}}}}");
  await waitFor(() => expect(title).toHaveAccessibleDescription(refusal));
});
