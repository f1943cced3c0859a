import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { api, open, paste, problem, startWorld } from "../test/world";

const { server } = startWorld();

const policy = {
  version: 3,
  routes: [
    { name: "ERP", match: { scope: { applications: ["sap"] } }, webhookIds: [], continue: true },
    { name: "Rest", match: {}, webhookIds: [], continue: false },
  ],
  defaultWebhookIds: [],
  rules: 2,
  updatedAt: "2026-11-23T10:00:00Z",
  updatedBy: "ada@example.com",
};

const tested = {
  answer: "ROUTED",
  policyVersion: 3,
  routes: [
    { name: "ERP", verdict: "NOT_MATCHED", unmet: ["scope.applications"] },
    { name: "Rest", verdict: "TAKEN", unmet: [] },
  ],
  webhooks: [{ id: "0192f0c1-0000-7000-8000-0000000000b1", name: "#ops", enabled: false, routes: ["Rest"] }],
};

function answers(stored: Record<string, unknown> = policy) {
  const asked: Record<string, unknown>[] = [];
  const sent: { body: Record<string, unknown>; tag: string | null }[] = [];
  server.use(
    http.get(api("/routing"), () => HttpResponse.json(stored)),
    http.get(api("/rules"), () => HttpResponse.json({ items: [] })),
    http.get(api("/exchanges/facets"), () => HttpResponse.json({ items: [] })),
    http.post(api("/routing/test"), async ({ request }) => {
      asked.push((await request.json()) as Record<string, unknown>);
      return HttpResponse.json(tested);
    }),
    http.put(api("/routing"), async ({ request }) => {
      const body = (await request.json()) as Record<string, unknown>;
      sent.push({ body, tag: request.headers.get("If-Match") });
      return HttpResponse.json({ ...policy, ...body, version: 4 });
    }),
  );
  return { asked, sent };
}

const routeNames = () =>
  within(screen.getByRole("list", { name: "Routes" }))
    .getAllByRole("heading")
    .map((h) => h.textContent);

test("routes are moved, edited, added and removed, and saved together", async () => {
  const { sent } = answers();
  const { user } = open("/routing");
  const erp = within(await screen.findByRole("region", { name: "ERP" }));
  expect(erp.getByText("application sap")).toBeVisible();
  expect(erp.getByText(/Continues/)).toBeVisible();
  expect(screen.queryByRole("button", { name: "Save policy" })).toBeNull();

  await user.click(screen.getByRole("button", { name: "Move ERP down" }));
  expect(routeNames()).toEqual(["1 Rest", "2 ERP"]);
  await user.click(screen.getByRole("button", { name: "Move ERP up" }));
  expect(screen.queryByRole("button", { name: "Save policy" })).toBeNull();

  await user.click(screen.getByRole("button", { name: "Edit Rest" }));
  const name = screen.getByRole("textbox", { name: "Name" });
  await user.clear(name);
  await user.type(name, "ERP");
  await user.click(screen.getByRole("button", { name: "Apply changes" }));
  expect(await screen.findByText("Another route has the same name; choose another one")).toBeVisible();
  await user.clear(name);
  await paste(user, name, "Warnings");
  await user.click(screen.getByRole("checkbox", { name: "Warning" }));
  await user.click(screen.getByRole("button", { name: "Apply changes" }));
  expect(routeNames()).toEqual(["1 ERP", "2 Warnings"]);

  await user.click(screen.getByRole("button", { name: "Add route" }));
  await paste(user, screen.getByRole("textbox", { name: "Name" }), "Archive");
  await user.click(screen.getByRole("checkbox", { name: /Continue/ }));
  await user.click(screen.getByRole("button", { name: "Add route" }));
  await user.click(screen.getByRole("button", { name: "Remove ERP" }));
  await user.click(screen.getByRole("button", { name: "Save policy" }));
  expect(await screen.findByText("The routing policy was saved.")).toBeVisible();
  expect(sent).toEqual([
    {
      tag: '"3"',
      body: {
        routes: [
          { name: "Warnings", match: { severities: ["WARNING"] }, webhookIds: [], escalation: [], continue: false },
          { name: "Archive", match: {}, webhookIds: [], escalation: [], continue: true },
        ],
        defaultWebhookIds: [],
        defaultEscalation: [],
      },
    },
  ]);
  await waitFor(() => expect(screen.queryByRole("button", { name: "Save policy" })).toBeNull());
});

test("the tester says who is notified and why, by the changes that have not been saved", async () => {
  const { asked } = answers();
  const { user } = open("/routing");
  expect(await screen.findByText("#ops")).toBeVisible();
  expect(screen.getByText(/#ops is disabled/)).toBeVisible();
  const steps = within(screen.getByRole("list", { name: "Result for each route" }));
  expect(steps.getByText(/ERP: does not match/)).toHaveTextContent("ERP: does not match (the application)");
  await user.type(screen.getByRole("textbox", { name: "Application" }), "sap");
  await waitFor(() => expect(asked.at(-1)).toEqual({ severity: "CRITICAL", exchange: { application: "sap" } }));
  await user.click(screen.getByRole("button", { name: "Remove ERP" }));
  expect(await screen.findByText("This uses your unsaved changes.")).toBeVisible();
  await waitFor(() => expect(asked.at(-1)).toMatchObject({ policy: { routes: [{ name: "Rest" }] } }));
});

test("the tester names a silence only if somebody would be notified", async () => {
  const suppressedBy = { id: "0192f0c1-0000-7000-8000-0000000000c1", name: "Upgrade", createdBy: "ada@example.com" };
  let answer: Record<string, unknown> = { ...tested, suppressedBy };
  answers();
  server.use(http.post(api("/routing/test"), () => HttpResponse.json(answer)));
  const { user } = open("/routing");
  expect(await screen.findByText(/The silence “Upgrade” currently suppresses these messages/)).toBeVisible();
  answer = { ...tested, webhooks: [], suppressedBy };
  await user.type(screen.getByRole("textbox", { name: "Application" }), "sap");
  expect(await screen.findByText("Nobody")).toBeVisible();
  expect(screen.queryByText(/suppresses these messages/)).toBeNull();
});

test("what the server refuses stays on the page, and another version is not overwritten", async () => {
  answers();
  const { user } = open("/routing");
  await user.click(await screen.findByRole("button", { name: "Remove Rest" }));
  server.use(
    http.put(api("/routing"), () =>
      problem(412, { code: "stale", detail: "the routing policy was changed to version 4" }),
    ),
  );
  await user.click(screen.getByRole("button", { name: "Save policy" }));
  expect(await screen.findByText(/changed to version 4/)).toBeVisible();
  server.use(http.get(api("/routing"), () => HttpResponse.json({ ...policy, version: 4, routes: [] })));
  await user.click(screen.getByRole("button", { name: "Discard mine and load theirs" }));
  await waitFor(() => expect(screen.queryByRole("region", { name: "ERP" })).toBeNull());
});

test("what somebody edits stays when somebody else saves, and is not saved over it", async () => {
  const { sent } = answers();
  const { user, cache } = open("/routing");
  await user.click(await screen.findByRole("button", { name: "Remove ERP" }));
  server.use(http.get(api("/routing"), () => HttpResponse.json({ ...policy, version: 4, rules: 7, routes: [] })));
  await cache.invalidateQueries({ queryKey: ["routing"] });
  expect(await screen.findByText(/Used by 7 rules/)).toBeVisible();
  expect(screen.getByRole("region", { name: "Rest" })).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Save policy" }));
  await waitFor(() => expect(sent.map(({ tag }) => tag)).toEqual(['"3"']));
});

test("a form that is open stays when somebody else saves, and hides what would lose it", async () => {
  answers();
  const { user, cache } = open("/routing");
  await user.click(await screen.findByRole("button", { name: "Remove ERP" }));
  await user.click(screen.getByRole("button", { name: "Edit Rest" }));
  expect(screen.queryByRole("button", { name: "Discard changes" })).toBeNull();
  server.use(http.get(api("/routing"), () => HttpResponse.json({ ...policy, version: 4, rules: 7, routes: [] })));
  await cache.invalidateQueries({ queryKey: ["routing"] });
  expect(await screen.findByText(/Used by 7 rules/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  await user.click(screen.getByRole("button", { name: "Discard changes" }));
  await waitFor(() => expect(screen.queryByRole("region", { name: "Rest" })).toBeNull());
});

test("the focus goes on with what is edited, and to what comes next", async () => {
  answers();
  const { user } = open("/routing");
  await screen.findByRole("region", { name: "ERP" });
  const button = (name: string) => screen.getByRole("button", { name });
  await user.click(button("Add route"));
  expect(screen.getByRole("textbox", { name: "Name" })).toHaveFocus();
  await user.click(button("Cancel"));
  expect(button("Add route")).toHaveFocus();

  await user.click(button("Edit Rest"));
  expect(screen.getByRole("textbox", { name: "Name" })).toHaveFocus();
  await user.keyboard("2");
  await user.click(button("Add step"));
  await user.click(button("Apply changes"));
  expect(screen.getByText("Step 1, Notify: Must name at least one webhook or team")).toHaveFocus();
  await user.click(button("Cancel"));
  expect(button("Edit Rest")).toHaveFocus();

  await user.click(button("Move Rest up"));
  expect(button("Edit Rest")).toHaveFocus(); // It cannot be moved up again.
  await user.click(button("Remove ERP"));
  expect(button("Save policy")).toHaveFocus();
  await user.click(button("Discard changes"));
  expect(screen.getByText(/^Routes are tried from top to bottom/).parentElement).toHaveFocus();

  await user.click(button("Edit default"));
  expect(screen.getByRole("region", { name: "Edit default" })).toHaveFocus();
  await user.click(button("Apply changes"));
  expect(button("Add route")).toHaveFocus(); // Nothing was changed, so there is nothing to save.
});

test("after a step is removed, the focus is on the next, the previous, or what adds one", async () => {
  answers();
  const { user } = open("/routing");
  await screen.findByRole("region", { name: "ERP" });
  const button = (name: string) => screen.getByRole("button", { name });
  await user.click(button("Edit Rest"));
  for (let step = 0; step < 3; step++) await user.click(button("Add step"));
  await user.click(button("Remove step 2"));
  expect(screen.queryByRole("button", { name: "Remove step 3" })).toBeNull();
  expect(button("Remove step 2")).toHaveFocus();
  await user.click(button("Remove step 2"));
  await waitFor(() => expect(button("Remove step 1")).toHaveFocus());
  await user.click(button("Remove step 1"));
  await waitFor(() => expect(button("Add step")).toHaveFocus());
});

test("a policy that cannot be read is not replaced without a change", async () => {
  answers({ ...policy, routes: [], problem: "unknown field" });
  open("/routing");
  expect(await screen.findByText(/The stored policy cannot be used/)).toBeVisible();
  expect(screen.queryByRole("button", { name: "Save policy" })).toBeNull();
});

test("viewers read the policy", async () => {
  answers();
  server.use(
    http.get(api("/me"), () =>
      HttpResponse.json({
        kind: "user",
        id: "u",
        name: "V",
        email: "v@example.com",
        role: "viewer",
        tenant: "default",
      }),
    ),
  );
  open("/routing");
  await screen.findByRole("region", { name: "ERP" });
  expect(screen.queryByRole("button", { name: "Add route" })).toBeNull();
  expect(screen.queryByRole("button", { name: "Edit ERP" })).toBeNull();
});

test("a route escalates to webhooks and teams", async () => {
  const { sent } = answers();
  server.use(http.get(api("/teams"), () => HttpResponse.json({ version: 2, teams: [{ name: "platform" }] })));
  const { user } = open("/routing");
  await user.click(await screen.findByRole("button", { name: "Edit ERP" }));
  await user.click(screen.getByRole("button", { name: "Add step" }));
  await user.click(screen.getByRole("button", { name: "Apply changes" }));
  expect(await screen.findByText("Step 1, Notify: Must name at least one webhook or team")).toBeVisible();

  const step = within(screen.getByRole("group", { name: "Step 1" }));
  await user.click(step.getByLabelText("Notify", { selector: "input" }));
  await user.click(await screen.findByRole("option", { name: "Team platform" }));
  await user.clear(step.getByRole("spinbutton", { name: "After" }));
  await user.type(step.getByRole("spinbutton", { name: "After" }), "90");
  await user.click(screen.getByRole("button", { name: "Apply changes" }));
  const erp = within(await screen.findByRole("region", { name: "ERP" }));
  expect(erp.getByRole("list", { name: "Escalation" })).toHaveTextContent(
    "not acknowledged after 1 h 30 min → team platform",
  );

  await user.click(screen.getByRole("button", { name: "Save policy" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]?.body).toMatchObject({
    routes: [
      { name: "ERP", escalation: [{ afterMinutes: 90, webhookIds: [], teams: ["platform"] }] },
      { name: "Rest", escalation: [] },
    ],
    defaultEscalation: [],
  });
});

test("what is changed while the policy is being saved stays, and is saved next", async () => {
  const { sent } = answers();
  let release = () => {};
  server.use(
    http.put(api("/routing"), async ({ request }) => {
      const body = (await request.json()) as Record<string, unknown>;
      sent.push({ body, tag: request.headers.get("If-Match") });
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return HttpResponse.json({ ...policy, ...body, version: 3 + sent.length });
    }),
  );
  const { user } = open("/routing");
  await user.click(await screen.findByRole("button", { name: "Move ERP down" }));
  await user.click(screen.getByRole("button", { name: "Save policy" }));
  await waitFor(() => expect(sent).toHaveLength(1));
  await user.click(screen.getByRole("button", { name: "Edit ERP" }));
  await paste(user, screen.getByRole("textbox", { name: "Name" }), " of mine");
  release();
  expect(await screen.findByText("The routing policy was saved.")).toBeVisible();
  expect(screen.getByRole("textbox", { name: "Name" })).toHaveValue("ERP of mine");
  await user.click(screen.getByRole("button", { name: "Apply changes" }));
  await user.click(screen.getByRole("button", { name: "Save policy" }));
  await waitFor(() => expect(sent).toHaveLength(2));
  release();
  expect(sent[1]).toMatchObject({ tag: '"4"', body: { routes: [{ name: "Rest" }, { name: "ERP of mine" }] } });
  await waitFor(() => expect(screen.queryByRole("button", { name: "Save policy" })).toBeNull());
});
