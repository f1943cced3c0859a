import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import type { Rule, RuleDefinition } from "../api/client";
import { aRule, noPreview } from "../test/rules";
import { api, open, paste, problem, startWorld } from "../test/world";

const { server } = startWorld();
const address = `/rules/${aRule().id}/edit`;
let stored: Rule;

/** A rule that is stored like in the API: by its version. */
beforeEach(() => {
  stored = aRule();
  server.use(
    http.get(api("/rules/:id"), () => HttpResponse.json(stored)),
    http.put(api("/rules/:id"), async ({ request }) => {
      if (request.headers.get("If-Match") !== `"${stored.version}"`) return problem(412, { code: "stale" });
      stored = {
        ...stored,
        ...((await request.json()) as RuleDefinition as Partial<Rule>),
        version: stored.version + 1,
      };
      return HttpResponse.json(stored);
    }),
  );
});

const save = () => screen.getByRole("button", { name: "Save rule" });

test("an edit is saved over the version that was read, and again over its own", async () => {
  const { user } = open(address);
  const name = await screen.findByLabelText("Name");
  expect(name).toHaveValue("Failed orders");
  expect(save()).toBeDisabled();
  for (const [added, version] of [
    [" of ERP", 4],
    ["!", 5],
  ] as const) {
    await user.type(name, added);
    await user.click(save());
    await waitFor(() => expect(stored.version).toBe(version));
    await waitFor(() => expect(save()).toBeDisabled());
  }
  expect(stored.name).toBe("Failed orders of ERP!");
  expect(localStorage).toHaveLength(0);
});

test("a version that somebody else has saved meanwhile is shown, and nothing is overwritten unasked", async () => {
  const { user } = open(address);
  await paste(user, await screen.findByLabelText("Name"), " of mine");
  await user.click(screen.getByRole("radio", { name: "Warning" }));
  stored = { ...stored, name: "Failed orders of theirs", scope: { applications: ["billing"] }, version: 4 };
  await user.click(save());
  const dialog = await screen.findByRole("dialog", { name: "Someone else has changed this rule" });
  expect(stored.version).toBe(4);
  const choice = (field: string, side: RegExp) =>
    within(within(dialog).getByRole("group", { name: field })).getByRole("radio", { name: side });
  expect(choice("Name changed by both", /Mine/)).toBeChecked();
  expect(choice("Applications", /Theirs billing/)).toBeChecked();
  expect(choice("Severity", /Mine Warning/)).toBeChecked();
  await user.click(choice("Name changed by both", /Theirs/));
  await user.click(within(dialog).getByRole("button", { name: "Use these versions" }));
  expect(screen.getByLabelText("Name")).toHaveValue("Failed orders of theirs");
  await user.click(save());
  await waitFor(() => expect(stored.version).toBe(5));
  expect(stored).toMatchObject({
    name: "Failed orders of theirs",
    severity: "WARNING",
    scope: { applications: ["billing"] },
  });
});

test("leaving asks, staying keeps, and a draft is there after a reload until it is given up", async () => {
  const first = open(address);
  await first.user.type(await screen.findByLabelText("Name"), "!");
  await first.user.click(screen.getByRole("link", { name: "Webhooks" }));
  const dialog = await screen.findByRole("dialog", { name: "Leave without saving?" });
  await first.user.click(within(dialog).getByRole("button", { name: "Cancel" }));
  expect(first.router.state.location.pathname).toBe(address);
  first.unmount();

  const { user, router } = open(address);
  expect(await screen.findByText(/Your unsaved changes from/)).toBeVisible();
  expect(screen.getByLabelText("Name")).toHaveValue("Failed orders!");
  await user.click(screen.getByRole("button", { name: "Discard" }));
  expect(screen.getByLabelText("Name")).toHaveValue("Failed orders");
  await user.type(screen.getByLabelText("Name"), "?");
  await user.click(screen.getByRole("link", { name: "Webhooks" }));
  await user.click(await screen.findByRole("button", { name: "Discard changes" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/webhooks"));
  expect(localStorage).toHaveLength(0);
});

test("the preview tells what would have been raised, and the message is about the newest match", async () => {
  const exchange = {
    executionId: "x-1",
    startTime: "2026-11-21T13:00:00.123456789Z",
    environment: "production",
    application: "orders",
    route: "order-to-erp",
    status: "FAILED",
    durationNs: "12345678",
    errorType: "java.net.ConnectException",
    errorMessage: "ERP refused",
    correlationId: "",
  };
  const asked: unknown[] = [];
  server.use(
    http.post(api("/rules/preview"), () =>
      HttpResponse.json({
        ...noPreview,
        alerts: 412,
        buckets: [400, 12],
        shares: [{ application: "orders", route: "order-to-erp", alerts: 412 }],
        newest: [{ id: "a1", title: "t", message: "m", state: "FIRING", severity: "CRITICAL", exchange }],
      }),
    ),
    http.post(api("/templates/preview"), async ({ request }) => {
      asked.push(await request.clone().json());
      return undefined;
    }),
  );
  open(address);
  expect(await screen.findByText("In the last 24 h, this would have raised 412 alerts.")).toBeVisible();
  expect(screen.getByRole("img", { name: /Alerts over time: peak of 400/ })).toBeVisible();
  const title = await screen.findByText("CRITICAL orders");
  expect(title).toContainElement(screen.getByRole("img", { name: "red circle" }));
  const ref = { executionId: "x-1", startTime: exchange.startTime };
  await waitFor(() => expect(asked.at(-1)).toMatchObject({ kind: "slack", exchange: ref, ruleName: "Failed orders" }));
});

test("a number is shown with its time, also while there is none for another time", async () => {
  const refused: unknown[] = [];
  server.use(
    http.post(api("/rules/preview"), async ({ request }) => {
      const { hours } = (await request.json()) as { hours: number };
      if (hours === 24) return HttpResponse.json({ ...noPreview, alerts: 412 });
      refused.push(hours);
      return problem(422, { detail: "The source takes too long." });
    }),
  );
  const { user } = open(address);
  const shown = await screen.findByText("In the last 24 h, this would have raised 412 alerts.");
  await user.selectOptions(screen.getByRole("combobox", { name: "Time range of the preview" }), "last hour");
  expect(await screen.findByText(/The source takes too long\./)).toBeVisible();
  expect(refused).toEqual([1]);
  expect(shown).toHaveTextContent("In the last 24 h, this would have raised 412 alerts.");
});

test("a test message tells what came of it at each webhook", async () => {
  stored = aRule({ webhookIds: ["w1"] });
  server.use(
    http.get(api("/webhooks"), () =>
      HttpResponse.json({ items: [{ id: "w1", name: "#ops", kind: "slack", enabled: true }] }),
    ),
    http.post(api("/rules/:id/test"), () =>
      HttpResponse.json({
        items: [
          { webhookId: "w1", webhookName: "#ops", verdict: "DELIVERED", durationMs: 84.2, statusCode: 200 },
          { webhookId: "w2", webhookName: "desk", verdict: "REFUSED", durationMs: 3, statusCode: 404, response: "no" },
        ],
      }),
    ),
  );
  const { user } = open(address);
  await user.click(await screen.findByRole("button", { name: "Send test message" }));
  expect(await screen.findByText("Delivered to #ops in 84.2 ms.")).toBeVisible();
  expect(screen.getByText("Not delivered to desk: status 404: no")).toBeVisible();
});

test("who may not write can read", async () => {
  server.use(
    http.get(api("/me"), () =>
      HttpResponse.json({ kind: "user", id: "u2", name: "Vi", role: "viewer", tenant: "default" }),
    ),
  );
  open(address);
  expect(await screen.findByText(/requires the editor role/)).toBeVisible();
  expect(screen.getByLabelText("Name")).toBeDisabled();
  expect(save()).toBeDisabled();
});

test("a rule that does not exist any more says so", async () => {
  server.use(http.get(api("/rules/:id"), () => problem(404, { code: "not_found", detail: "There is no such rule." })));
  open(address);
  expect(await screen.findByRole("alert")).toHaveTextContent("There is no such rule.");
});
