import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { api, open, paste, problem, startWorld } from "../test/world";

const { server } = startWorld();
const health = { state: "ok", consecutiveFailures: 0 };

test("a webhook that rules need stays, and the dialog says which", async () => {
  const webhook = {
    id: "w1",
    name: "#ops",
    kind: "slack",
    urlHost: "hooks.slack.com",
    enabled: true,
    ratePerSecond: 1,
    health,
  };
  server.use(
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [webhook] })),
    http.delete(api("/webhooks/:id"), () =>
      problem(409, { code: "conflict", detail: "The rule “Failed orders” is bound to this webhook." }),
    ),
  );
  const { user } = open("/webhooks");
  await user.click(await screen.findByRole("button", { name: "Delete #ops" }));
  const dialog = screen.getByRole("dialog", { name: "Delete “#ops”?" });
  await user.click(within(dialog).getByRole("button", { name: "Delete webhook" }));
  expect(await within(dialog).findByRole("alert")).toHaveTextContent(
    "The rule “Failed orders” is bound to this webhook.",
  );
  await user.click(within(dialog).getByRole("button", { name: "Cancel" }));
  expect(screen.queryByRole("dialog")).toBeNull();
  expect(screen.getByText("hooks.slack.com")).toBeVisible();
});

test("a webhook whose key is missing says so, beside the others", async () => {
  const webhook = { kind: "generic", urlHost: "erp.example.com", enabled: true, ratePerSecond: 0, health };
  server.use(
    http.get(api("/webhooks"), () =>
      HttpResponse.json({
        items: [
          { ...webhook, id: "w1", name: "found" },
          { ...webhook, id: "w2", name: "lost", secretsProblem: "its key 63a9ba7a is not among the configured keys" },
        ],
      }),
    ),
  );
  open("/webhooks");
  const row = within(await screen.findByRole("row", { name: /lost/ }));
  expect(row.getByText("Cannot send")).toBeVisible();
  expect(row.getByText(/its key 63a9ba7a is not among the configured keys/)).toBeVisible();
  expect(row.queryByText("Enabled")).toBeNull();
  expect(within(screen.getByRole("row", { name: /found/ })).getByText("Enabled")).toBeVisible();
});

test("a webhook for operators is made and shown as one", async () => {
  let sent: unknown;
  server.use(
    http.get(api("/webhooks"), () =>
      HttpResponse.json({
        items: [
          {
            id: "w1",
            name: "Tocsin",
            kind: "slack",
            urlHost: "hooks.slack.com",
            enabled: true,
            operators: true,
            health,
          },
        ],
      }),
    ),
    http.post(api("/webhooks"), async ({ request }) => {
      sent = await request.json();
      return HttpResponse.json({ id: "w1", name: "Tocsin" }, { status: 201 });
    }),
  );
  const { user } = open("/webhooks/new");
  await paste(user, await screen.findByLabelText("Name"), "Tocsin");
  await paste(user, screen.getByLabelText("URL"), "https://hooks.slack.com/x");
  await user.click(screen.getByLabelText(/^For operators/));
  await user.click(screen.getByRole("button", { name: "Create webhook" }));
  expect(await screen.findByText(/notifies operators/)).toBeVisible();
  expect(sent).toEqual({ name: "Tocsin", kind: "slack", url: "https://hooks.slack.com/x", operators: true });
});

test("a bot is made, errors are shown beside the fields, and the list shows where its buttons lead", async () => {
  const sent: unknown[] = [];
  server.use(
    http.get(api("/webhooks"), () =>
      HttpResponse.json({
        items: [
          {
            id: "w1",
            name: "#ops",
            kind: "slack",
            urlHost: "",
            enabled: true,
            health,
            slack: {
              channel: "C0123456789",
              hasBotToken: true,
              hasSigningSecret: true,
              interactionsPath: "/slack/interactions/w1",
            },
          },
        ],
      }),
    ),
    http.post(api("/webhooks"), async ({ request }) => {
      sent.push(await request.json());
      return sent.length === 1
        ? problem(400, {
            code: "invalid",
            detail: "The webhook is not valid",
            errors: [{ field: "slack.botToken", code: "secret", message: "This is another kind of token" }],
          })
        : HttpResponse.json({ id: "w1", name: "#ops" }, { status: 201 });
    }),
  );
  const { user } = open("/webhooks/new");
  await paste(user, await screen.findByLabelText("Name"), "#ops");
  await paste(user, screen.getByLabelText("URL"), "https://typed.before");
  await user.click(screen.getByRole("radio", { name: "Bot" }));
  expect(screen.queryByLabelText("URL")).toBeNull();
  await paste(user, screen.getByLabelText("Channel"), "C0123456789");
  await paste(user, screen.getByLabelText("Bot token"), "xoxp-1");
  await user.click(screen.getByRole("button", { name: "Create webhook" }));
  expect(await screen.findByText("This is another kind of token")).toBeVisible();
  await paste(user, screen.getByLabelText("Signing secret of the app"), "0123");
  await user.click(screen.getByRole("button", { name: "Create webhook" }));
  expect(await screen.findByText(/\/slack\/interactions\/w1$/)).toBeVisible();
  expect(screen.getByText(/bot with buttons/)).toBeVisible();
  expect(sent).toEqual([
    { name: "#ops", kind: "slack", slack: { channel: "C0123456789", botToken: "xoxp-1" } },
    { name: "#ops", kind: "slack", slack: { channel: "C0123456789", botToken: "xoxp-1", signingSecret: "0123" } },
  ]);
});

test("a webhook that is not made yet is kept without its address, and is gone on with", async () => {
  const first = open("/webhooks/new");
  await first.user.type(await screen.findByLabelText("Name"), "#later");
  await first.user.type(screen.getByLabelText("URL"), "https://hooks.slack.com/secret");
  first.unmount();
  expect(JSON.stringify({ ...localStorage })).not.toContain("hooks.slack.com");

  const second = open("/webhooks");
  await second.user.click(await screen.findByRole("link", { name: "Continue new webhook" }));
  expect(await screen.findByLabelText("Name")).toHaveValue("#later");
  expect(screen.getByLabelText("URL")).toHaveValue("");
  expect(screen.getByText(/Enter its URL and secrets again/)).toBeVisible();
});
