import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { Receiver, Webhook } from "../api/client";
import { api, open, paste, problem, startWorld } from "../test/world";
import { blank, definition, editOf, valuesOf, withoutSecrets } from "./form";
import { found, linkTarget, mailOf, readable } from "./receivers";

const { server } = startWorld();

const pager: Receiver = {
  id: "pager",
  name: "Pager",
  about: "One incident for each alert.",
  own: false,
  keyed: true,
  events: ["ACKNOWLEDGED", "RESOLVED"],
  inputs: [
    { name: "key", label: "Key", type: "text", secret: true, required: true },
    {
      name: "region",
      label: "Region",
      type: "choice",
      secret: false,
      required: false,
      default: "us",
      choices: [
        { value: "us", label: "United States" },
        { value: "eu", label: "Europe" },
      ],
    },
  ],
  ratePerSecond: 2,
  digestAbove: 0,
};

const chat: Receiver = {
  ...pager,
  id: "chat",
  name: "Chat",
  about: "A message in a channel.",
  keyed: false,
  inputs: [{ name: "url", label: "Webhook URL", type: "url", secret: true, required: true }],
};

test("a search finds by name, id and what it gets", () => {
  expect(found([pager, chat], "").length).toBe(2);
  expect(found([pager, chat], "channel MESSAGE").map(({ id }) => id)).toEqual(["chat"]);
  expect(found([pager, chat], "nothing")).toEqual([]);
});

test("a link leads to the server that was entered, once it was", () => {
  expect(linkTarget("https://example.com/keys", {})).toBe("https://example.com/keys");
  expect(linkTarget(undefined, { server: "https://own.example.com" })).toBeUndefined();
  const link = "{{input.server}}/services";
  expect(linkTarget(link, { server: " https://own.example.com/base/ " })).toBe("https://own.example.com/base/services");
  for (const server of ["", "https://", "own.example.com", "javascript:alert(1)//"])
    expect(linkTarget(link, { server })).toBeUndefined();
});

test("bodies are shown for reading", () => {
  expect(readable({ contentType: "application/json", body: '{"a":1}' })).toBe('{\n  "a": 1\n}');
  expect(readable({ contentType: "application/x-www-form-urlencoded", body: "To=%2B1&Body=a+b" })).toBe(
    "To = +1\nBody = a b",
  );
});

test("an e-mail is distinguished from other requests", () => {
  const body = JSON.stringify({ subject: "s", text: "t", html: "<p>h</p>" });
  expect(mailOf({ method: "SMTP", body })).toEqual({ subject: "s", text: "t", html: "<p>h</p>" });
  expect(mailOf({ method: "POST", body })).toBeUndefined();
});

test("an e-mail is previewed as text and as HTML, in a frame in which nothing runs", async () => {
  const post: Receiver = { ...chat, id: "email", name: "E-mail", inputs: [] };
  server.use(
    http.get(api("/receivers"), () => HttpResponse.json({ items: [post] })),
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [] })),
    http.post(api("/receivers/email/preview"), () =>
      HttpResponse.json({
        requests: [
          {
            event: "fired",
            method: "SMTP",
            url: "smtp://smtp.example.com:587",
            headers: [],
            contentType: "application/json",
            body: JSON.stringify({ subject: "[CRITICAL] Order failed", text: "the text", html: "<p>the HTML</p>" }),
            cut: [],
          },
        ],
      }),
    ),
  );
  const { user } = open("/webhooks/new");
  await user.click(await screen.findByLabelText("Receiver"));
  await user.click(await screen.findByRole("button", { name: /^E-mail/ }));
  await user.click(screen.getByText("Request preview"));
  expect(await screen.findByText("Subject: [CRITICAL] Order failed")).toBeVisible();
  expect(screen.getByText("the text")).toBeVisible();
  const frame = screen.getByTitle("The e-mail as HTML");
  expect(frame).toHaveAttribute("srcdoc", "<p>the HTML</p>");
  expect(frame).toHaveAttribute("sandbox", "");
});

test("a receiver is found, described and previewed, and the server's error is shown beside the field", async () => {
  const sent: unknown[] = [];
  const previewed: unknown[] = [];
  server.use(
    http.get(api("/receivers"), () => HttpResponse.json({ items: [chat, pager] })),
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [] })),
    http.post(api("/receivers/pager/preview"), async ({ request }) => {
      previewed.push(await request.json());
      const made = {
        method: "POST",
        url: "https://pager.example.com/",
        headers: [],
        contentType: "application/json",
        cut: [],
      };
      return HttpResponse.json({
        requests: [
          { ...made, event: "fired", body: '{"action":"trigger"}' },
          { ...made, event: "resolved", body: '{"action":"resolve"}' },
        ],
      });
    }),
    http.post(api("/webhooks"), async ({ request }) => {
      sent.push(await request.json());
      if (sent.length > 1) return HttpResponse.json({ id: "w1", name: "On call" }, { status: 201 });
      return problem(400, {
        detail: "The webhook is not valid.",
        errors: [{ field: "preset.inputs.key", code: "pattern", message: "Does not have the expected form" }],
      });
    }),
  );
  const { user } = open("/webhooks/new");
  await paste(user, await screen.findByLabelText("Name"), "On call");
  await user.click(screen.getByLabelText("Receiver"));
  await paste(user, await screen.findByLabelText("Search receivers"), "incident");
  expect(screen.queryByRole("button", { name: /^Chat/ })).toBeNull();
  screen.getByRole("button", { name: /^Pager/ }).focus();
  await user.keyboard("{Enter}");
  expect(await screen.findByRole("group", { name: "Chosen receiver" })).toHaveFocus();
  await user.click(screen.getByRole("button", { name: "Choose another receiver" }));
  await waitFor(() => expect(screen.getByLabelText("Search receivers")).toHaveFocus());
  await user.click(screen.getByRole("button", { name: /^Pager/ }));
  await paste(user, screen.getByLabelText("Key"), "too-short");
  await user.selectOptions(screen.getByLabelText("Region"), "eu");
  expect(screen.getByLabelText("acknowledged")).toBeChecked();
  expect(screen.queryByLabelText("reopened")).toBeNull();

  await user.click(screen.getByText("Request preview"));
  expect(await screen.findByText(/"trigger"/)).toBeVisible();
  await user.click(within(screen.getByRole("radiogroup", { name: "Event" })).getByLabelText("Resolved"));
  expect(screen.getByText(/"resolve"/)).toBeVisible();
  expect(JSON.stringify(previewed)).not.toContain("too-short");

  await user.click(screen.getByRole("button", { name: "Create webhook" }));
  expect(await screen.findByText("Does not have the expected form")).toBeVisible();
  expect(screen.getByLabelText("Key")).toBeInvalid();
  await user.click(screen.getByRole("button", { name: "Create webhook" }));
  expect(await screen.findByText(/“On call” was created/)).toBeVisible();
  expect(sent[1]).toEqual({
    name: "On call",
    kind: "generic",
    preset: { id: "pager", inputs: { key: "too-short", region: "eu" } },
    events: ["ACKNOWLEDGED", "RESOLVED"],
  });
});

test("an edit keeps the secrets that are not typed, and a draft has none", () => {
  const webhook = {
    ...({
      name: "On call",
      kind: "generic",
      enabled: true,
      operators: false,
      events: [],
      bodyTemplate: "",
    } as Partial<Webhook>),
    preset: { id: "pager", name: "Pager", inputs: { region: "us" }, secretInputs: ["key"] },
  } as Webhook;
  const values = valuesOf(webhook);
  expect(editOf(values, webhook).preset).toEqual({ inputs: { region: "us" } });
  const typed = { ...values, inputs: { key: "secret-key", region: "" } };
  expect(editOf(typed, webhook).preset).toEqual({ inputs: { key: "secret-key", region: "" } });
  expect(withoutSecrets(typed).inputs).toEqual({ key: "", region: "" });
  expect(withoutSecrets(values)).toEqual(values);
  const fresh = {
    ...blank,
    kind: "generic" as const,
    forReceiver: true,
    receiver: "pager",
    inputs: { key: "k", region: "" },
  };
  expect(definition(fresh)).toMatchObject({ preset: { id: "pager", inputs: { key: "k" } } });
});
