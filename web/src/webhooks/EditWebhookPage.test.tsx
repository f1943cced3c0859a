import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, describe, expect, test } from "vitest";
import type { Webhook, WebhookEdit } from "../api/client";
import { api, open, problem, startWorld } from "../test/world";

const { server } = startWorld();

let webhook: Webhook;
let saved: { match: string | null; edit: WebhookEdit }[];

beforeEach(() => {
  saved = [];
  webhook = {
    id: "w1",
    version: 3,
    createdAt: "2026-11-21T10:00:00Z",
    updatedAt: "2026-11-21T10:00:00Z",
    name: "erp",
    kind: "generic",
    urlHost: "erp.example.com",
    headerNames: ["Authorization"],
    bodyTemplate: "",
    hasSigningSecret: true,
    enabled: true,
    operators: false,
    timeoutSeconds: 10,
    maxConcurrent: 8,
    ratePerSecond: 0,
    digestAbove: 0,
    health: {
      state: "open",
      consecutiveFailures: 5,
      lastError: "connection refused",
      until: new Date(Date.now() + 30_500).toISOString(),
    },
  };
  server.use(
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [webhook] })),
    http.get(api("/webhooks/:id"), () => HttpResponse.json(webhook)),
    http.put(api("/webhooks/:id"), async ({ request }) => {
      const match = request.headers.get("If-Match");
      const edit = (await request.json()) as WebhookEdit;
      saved.push({ match, edit });
      if (match !== `"${webhook.version}"`) return problem(412, { code: "stale", detail: "It was changed." });
      webhook = { ...webhook, name: edit.name, version: webhook.version + 1 };
      return HttpResponse.json(webhook);
    }),
  );
});

const name = async () => screen.findByLabelText("Name");

describe("a webhook", () => {
  test("is edited, and its secrets stay", async () => {
    const { user, router } = open("/webhooks/w1");
    await user.type(await name(), " 2");
    expect(screen.queryByLabelText("Headers")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Save the webhook" }));
    await waitFor(() => expect(router.state.location.pathname).toBe("/webhooks"));
    expect(saved[0]?.match).toBe('"3"');
    expect(saved[0]?.edit).not.toHaveProperty("url");
    expect(saved[0]?.edit).toMatchObject({ name: "erp 2", enabled: true });
  });

  test("that somebody else has changed meanwhile shows both versions, and keeps what was written", async () => {
    const { user } = open("/webhooks/w1");
    await user.type(await name(), " of mine");
    webhook = { ...webhook, name: "erp of theirs", version: 4 };
    await user.click(screen.getByRole("button", { name: "Save the webhook" }));
    const both = await screen.findByRole("region", { name: "Both versions" });
    expect(within(both).getByRole("row", { name: "Name erp of mine erp of theirs" })).toBeVisible();
    expect(await name()).toHaveValue("erp of mine");
    await user.click(within(both).getByRole("button", { name: "Save mine over theirs" }));
    await waitFor(() => expect(webhook).toMatchObject({ name: "erp of mine", version: 5 }));
    expect(saved.map(({ match }) => match)).toEqual(['"3"', '"4"']);
  });

  test("can be taken as somebody else has left it", async () => {
    const { user } = open("/webhooks/w1");
    await user.type(await name(), " of mine");
    webhook = { ...webhook, name: "erp of theirs", version: 4 };
    await user.click(screen.getByRole("button", { name: "Save the webhook" }));
    await user.click(await screen.findByRole("button", { name: "Take theirs" }));
    expect(await name()).toHaveValue("erp of theirs");
    expect(screen.queryByRole("region", { name: "Both versions" })).toBeNull();
  });

  test("that does not answer says so, and when it is tried next", async () => {
    open("/webhooks/w1");
    expect(await screen.findByText("Does not answer")).toBeVisible();
    expect(screen.getByText(/5 attempts in a row/)).toHaveTextContent(/next probe in \d+ s\. connection refused/);
  });

  test("is switched off without losing the edit under way", async () => {
    server.use(
      http.post(api("/webhooks/:id/disable"), () => {
        webhook = { ...webhook, enabled: false, version: 4, health: { state: "off", consecutiveFailures: 0 } };
        return HttpResponse.json(webhook);
      }),
    );
    const { user } = open("/webhooks/w1");
    await user.type(await name(), " 2");
    await user.click(screen.getByRole("button", { name: "Disable" }));
    expect(await screen.findByText("Off")).toBeVisible();
    await user.click(screen.getByRole("button", { name: "Save the webhook" }));
    await waitFor(() => expect(webhook.name).toBe("erp 2"));
    expect(saved.map(({ match, edit }) => [match, edit.enabled])).toEqual([['"4"', false]]);
  });

  test("is tested, and tells what came of it", async () => {
    server.use(
      http.post(api("/webhooks/:id/test"), () =>
        HttpResponse.json({
          webhookId: "w1",
          webhookName: "erp",
          verdict: "REFUSED",
          statusCode: 400,
          durationMs: 12.3,
          error: "the receiver answered 400",
          response: "no such field",
        }),
      ),
    );
    const { user } = open("/webhooks/w1");
    await user.click(await screen.findByRole("button", { name: "Test" }));
    await user.click(screen.getByRole("button", { name: "Send a test message" }));
    expect(await screen.findByText("✗ Refused")).toBeVisible();
    expect(screen.getByText(/HTTP 400 · 12.3 ms/)).toBeVisible();
    expect(screen.getByText("no such field")).toBeVisible();
  });

  test("gets a new secret, which is shown once", async () => {
    let overlap: unknown;
    server.use(
      http.post(api("/webhooks/:id/rotate-secret"), async ({ request }) => {
        overlap = await request.json();
        return HttpResponse.json({ signingSecret: "whsec_new" });
      }),
    );
    const { user } = open("/webhooks/w1");
    await user.click(await screen.findByRole("button", { name: "Rotate the secret" }));
    await user.selectOptions(screen.getByRole("combobox"), "1 hour");
    await user.click(screen.getByRole("button", { name: "Make a new secret" }));
    expect(await screen.findByText("whsec_new")).toBeVisible();
    expect(overlap).toEqual({ overlapSeconds: 3600 });
    await user.click(screen.getByRole("button", { name: "Close" }));
    expect(screen.queryByText("whsec_new")).toBeNull();
  });

  test("is for editors to edit", async () => {
    server.use(
      http.get(api("/me"), () => HttpResponse.json({ kind: "user", name: "Op", role: "operator", tenant: "default" })),
    );
    open("/webhooks/w1");
    expect(await screen.findByRole("heading", { name: "This is for editors" })).toBeVisible();
  });
});
