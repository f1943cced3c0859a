import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, describe, expect, test } from "vitest";
import type { Webhook, WebhookEdit } from "../api/client";
import { api, held, open, paste, problem, startWorld } from "../test/world";

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
    events: [],
    eventMaxAgeSeconds: 86400,
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
const conflict = async () => screen.findByRole("dialog", { name: "Someone else has changed this webhook" });

describe("a webhook", () => {
  test("is edited, and its secrets stay", async () => {
    const { user, router } = open("/webhooks/w1");
    await user.type(await name(), " 2");
    expect(screen.queryByLabelText("Headers")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    await waitFor(() => expect(router.state.location.pathname).toBe("/webhooks"));
    expect(saved[0]?.match).toBe('"3"');
    expect(saved[0]?.edit).not.toHaveProperty("url");
    expect(saved[0]?.edit).toMatchObject({ name: "erp 2", enabled: true });
  });

  test("gets quiet hours", async () => {
    const { user, router } = open("/webhooks/w1");
    await name();
    await user.click(screen.getByRole("button", { name: "Add quiet hours" }));
    const entry = within(screen.getByRole("group", { name: "Quiet hours 1" }));
    await user.click(entry.getByRole("checkbox", { name: "Sat" }));
    await user.clear(entry.getByLabelText("From"));
    await paste(user, entry.getByLabelText("From"), "22:00");
    await user.clear(entry.getByLabelText("Time zone"));
    await paste(user, entry.getByLabelText("Time zone"), "Europe/Berlin");
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    await waitFor(() => expect(router.state.location.pathname).toBe("/webhooks"));
    expect(saved[0]?.edit.quietHours).toEqual([
      { timeZone: "Europe/Berlin", weekdays: ["SUN", "MON", "TUE", "WED", "THU", "FRI"], from: "22:00", to: "07:00" },
    ]);
  });

  test("has quiet hours that are refused, and the focus goes there", async () => {
    const { user } = open("/webhooks/w1");
    await name();
    await user.click(screen.getByRole("button", { name: "Add quiet hours" }));
    const message = "Cannot be used: entry 1 has no weekday";
    server.use(
      http.put(api("/webhooks/:id"), () =>
        problem(400, { code: "invalid", errors: [{ field: "quietHours", code: "invalid", message }] }),
      ),
    );
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    await waitFor(() => expect(screen.getByText(message)).toHaveFocus());
  });

  test("has quiet hours that are removed", async () => {
    webhook = { ...webhook, quietHours: [{ timeZone: "UTC", weekdays: ["SAT", "SUN"], from: "00:00", to: "24:00" }] };
    const { user } = open("/webhooks/w1");
    await name();
    await user.click(screen.getByRole("button", { name: "Remove quiet hours 1" }));
    await waitFor(() => expect(screen.getByRole("button", { name: "Add quiet hours" })).toHaveFocus());
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    await waitFor(() => expect(saved).toHaveLength(1));
    expect(saved[0]?.edit).not.toHaveProperty("quietHours");
  });

  test("that somebody else has changed meanwhile shows both versions, and keeps what was written", async () => {
    const { user } = open("/webhooks/w1");
    await paste(user, await name(), " of mine");
    webhook = { ...webhook, name: "erp of theirs", version: 4 };
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    const both = await conflict();
    const side = within(within(both).getByRole("group", { name: "Name changed by both" }));
    expect(side.getByRole("radio", { name: /Mine erp of mine/ })).toBeChecked();
    expect(side.getByRole("radio", { name: /Theirs erp of theirs/ })).not.toBeChecked();
    await user.click(within(both).getByRole("button", { name: "Use these versions" }));
    expect(await name()).toHaveValue("erp of mine");
    expect(saved).toHaveLength(1);
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    await waitFor(() => expect(webhook).toMatchObject({ name: "erp of mine", version: 5 }));
    expect(saved.map(({ match }) => match)).toEqual(['"3"', '"4"']);
  });

  test("can be taken as somebody else has left it", async () => {
    const { user } = open("/webhooks/w1");
    await paste(user, await name(), " of mine");
    webhook = { ...webhook, name: "erp of theirs", version: 4 };
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    const both = await conflict();
    await user.click(within(both).getByRole("button", { name: "Use all theirs" }));
    await user.click(within(both).getByRole("button", { name: "Use these versions" }));
    expect(await name()).toHaveValue("erp of theirs");
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  test("that is not responding says so, and when it is tried next", async () => {
    open("/webhooks/w1");
    expect(await screen.findByText("Not responding")).toBeVisible();
    expect(screen.getByText(/5 failed attempts in a row/)).toHaveTextContent(
      /next probe in \d+ s\. connection refused/,
    );
  });

  test("shows that it works again, without losing the edit under way", async () => {
    const { user } = open("/webhooks/w1");
    await user.type(await name(), " 2");
    webhook = { ...webhook, version: 4, name: "theirs", health: { state: "ok", consecutiveFailures: 0 } };
    expect(await screen.findByText("Enabled")).toBeVisible();
    expect(screen.queryByText("Not responding")).toBeNull();
    expect(await name()).toHaveValue("erp 2");
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    await conflict();
    expect(saved[0]?.match).toBe('"3"');
  });

  test("is disabled without losing the edit under way", async () => {
    server.use(
      http.post(api("/webhooks/:id/disable"), () => {
        webhook = { ...webhook, enabled: false, version: 4, health: { state: "off", consecutiveFailures: 0 } };
        return HttpResponse.json(webhook);
      }),
    );
    const { user } = open("/webhooks/w1");
    await user.type(await name(), " 2");
    await user.click(screen.getByRole("button", { name: "Disable" }));
    expect(await screen.findByText("Disabled")).toBeVisible();
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    await waitFor(() => expect(webhook.name).toBe("erp 2"));
    expect(saved.map(({ match, edit }) => [match, edit.enabled])).toEqual([['"4"', false]]);
  });

  test("is disabled without losing what somebody else has changed before", async () => {
    server.use(
      http.post(api("/webhooks/:id/disable"), () => {
        webhook = { ...webhook, enabled: false, version: 5, health: { state: "off", consecutiveFailures: 0 } };
        return HttpResponse.json(webhook);
      }),
    );
    const { user } = open("/webhooks/w1");
    await user.type(await name(), " 2");
    webhook = { ...webhook, name: "erp of theirs", version: 4 };
    await user.click(screen.getByRole("button", { name: "Disable" }));
    expect(await screen.findByText("Disabled")).toBeVisible();
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    expect(await conflict()).toBeVisible();
    expect(webhook.name).toBe("erp of theirs");
  });

  test("that moves to another address asks for its headers", async () => {
    const { user } = open("/webhooks/w1");
    await paste(user, await screen.findByLabelText("URL"), "https://elsewhere.example.com/hook");
    server.use(
      http.put(
        api("/webhooks/:id"),
        () =>
          problem(400, {
            code: "invalid",
            errors: [{ field: "headers", code: "required", message: "Give the headers again" }],
          }),
        { once: true },
      ),
    );
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    expect(await screen.findByText("Give the headers again")).toBeVisible();
    await user.click(screen.getByRole("checkbox", { name: "Replace headers" }));
    await paste(user, screen.getByLabelText("Headers"), "Authorization: again");
    await user.click(screen.getByRole("button", { name: "Save webhook" }));
    await waitFor(() => expect(saved[0]?.edit.headers).toEqual({ Authorization: "again" }));
  });

  test("that is not saved is kept, all but its secrets, until it is given up or saved", async () => {
    const first = open("/webhooks/w1");
    await first.user.type(await name(), " of mine");
    await first.user.type(screen.getByLabelText("URL"), "https://erp.example.com/secret-path");
    await first.user.click(screen.getByRole("checkbox", { name: "Replace headers" }));
    await first.user.type(screen.getByLabelText("Headers"), "Authorization: secret");
    await first.user.click(screen.getByRole("link", { name: "Cancel" }));
    const asks = await screen.findByRole("dialog", { name: "Leave without saving?" });
    expect(asks).toHaveTextContent("This browser keeps everything except its URL, headers and secrets.");
    await first.user.click(within(asks).getByRole("button", { name: "Save as draft" }));
    expect(await screen.findByText("unsaved changes")).toBeVisible();
    expect(JSON.stringify({ ...localStorage })).toContain("erp of mine");
    expect(JSON.stringify({ ...localStorage })).not.toContain("secret-path");
    expect(JSON.stringify({ ...localStorage })).not.toContain("Authorization: secret");
    first.unmount();

    const second = open("/webhooks/w1");
    expect(await name()).toHaveValue("erp of mine");
    expect(screen.getByText(/Your unsaved changes from/)).toHaveTextContent(/Ada/);
    expect(screen.getByRole("checkbox", { name: "Replace headers" })).not.toBeChecked();
    await second.user.click(screen.getByRole("button", { name: "Discard" }));
    expect(await name()).toHaveValue("erp");
    await second.user.type(await name(), " 2");
    await second.user.click(screen.getByRole("button", { name: "Save webhook" }));
    await waitFor(() => expect(second.router.state.location.pathname).toBe("/webhooks"));
    expect(screen.queryByText("unsaved changes")).toBeNull();
    expect(Object.keys(localStorage).filter((key) => key.startsWith("tocsin.draft"))).toEqual([]);
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
    await user.click(screen.getByRole("button", { name: "Send test message" }));
    expect(await screen.findByText("✗ Refused")).toBeVisible();
    expect(screen.getByText(/status 400 · 12.3 ms/)).toBeVisible();
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
    await user.click(await screen.findByRole("button", { name: "Rotate secret" }));
    await user.selectOptions(screen.getByRole("combobox"), "1 hour");
    await user.click(screen.getByRole("button", { name: "Create new secret" }));
    expect(await screen.findByText("whsec_new")).toBeVisible();
    expect(overlap).toEqual({ overlapSeconds: 3600 });
    await user.click(screen.getByRole("button", { name: "Close" }));
    expect(screen.queryByText("whsec_new")).toBeNull();
  });

  test("says that two secrets sign, and asks before it ends the previous one", async () => {
    webhook = { ...webhook, formerSecretUntil: new Date(Date.now() + 7_230_000).toISOString() };
    server.use(
      http.post(api("/webhooks/w1/retire-secret"), () => {
        const { formerSecretUntil: _, ...rest } = webhook;
        webhook = { ...rest, version: webhook.version + 1 };
        return HttpResponse.json(webhook);
      }),
    );
    const { user } = open("/webhooks/w1");
    expect(await screen.findByText(/Requests are signed with two secrets.*the previous one expires/)).toHaveTextContent(
      "in 2 h",
    );
    await user.click(screen.getByRole("button", { name: "Retire previous secret" }));
    const dialog = screen.getByRole("dialog", { name: "Retire the previous secret?" });
    await user.click(within(dialog).getByRole("button", { name: "Retire it now" }));
    expect(await screen.findByText("Requests are signed with one secret.")).toBeVisible();
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(screen.queryByRole("button", { name: "Retire previous secret" })).toBeNull();
  });

  test("says that the previous secret stays although the dialog was closed meanwhile", async () => {
    webhook = { ...webhook, formerSecretUntil: new Date(Date.now() + 7_230_000).toISOString() };
    const { released, release } = held();
    server.use(
      http.post(api("/webhooks/w1/retire-secret"), async () => {
        await released;
        return problem(503, { code: "unavailable", detail: "Postgres cannot be reached." });
      }),
    );
    const { user } = open("/webhooks/w1");
    await user.click(await screen.findByRole("button", { name: "Retire previous secret" }));
    const dialog = within(screen.getByRole("dialog", { name: "Retire the previous secret?" }));
    await user.click(dialog.getByRole("button", { name: "Retire it now" }));
    await user.click(dialog.getByRole("button", { name: "Cancel" }));
    release();
    expect(await screen.findByText(/^The previous secret of “.*” was not retired\. Postgres/)).toBeVisible();
  });

  test("is for editors to edit", async () => {
    server.use(
      http.get(api("/me"), () => HttpResponse.json({ kind: "user", name: "Op", role: "operator", tenant: "default" })),
    );
    open("/webhooks/w1");
    expect(await screen.findByRole("heading", { name: "This page is for editors" })).toBeVisible();
  });
});
