import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import { roles } from "../api/access";
import { mayCall, type Operation } from "../api/operations";
import { aRule } from "../test/rules";
import { api, open, signedInAs, startWorld } from "../test/world";

const { server } = startWorld();
const id = (n: number) => `0192f0c1-0000-7000-8000-00000000000${n}`;
const at = "2026-11-21T14:00:00Z";
const failed = aRule({ id: id(1), webhookIds: [id(2)] });
const webhook = {
  id: id(2),
  name: "#ops",
  kind: "generic",
  urlHost: "ops.example.com",
  enabled: true,
  version: 1,
  timeoutSeconds: 10,
  ratePerSecond: 0,
  maxConcurrent: 8,
  digestAbove: 0,
  events: [],
  eventMaxAgeSeconds: 86400,
  headerNames: [],
  bodyTemplate: "",
  hasSigningSecret: true,
  health: { state: "ok", consecutiveFailures: 0 },
};
const message = {
  id: id(3),
  alertId: id(4),
  ruleId: id(1),
  webhookId: id(2),
  webhookName: "#ops",
  reason: "FIRED",
  status: "EXHAUSTED",
  attemptCount: 1,
  createdAt: at,
};

/** The controls of a page, and the operation that each calls. */
const offers: readonly { address: string; shown: RegExp; control: RegExp; operation: Operation }[] = [
  { address: "/rules", shown: /Failed orders/, control: /^New rule$/, operation: "createRule" },
  { address: "/rules", shown: /Failed orders/, control: /^Delete Failed orders$/, operation: "deleteRule" },
  { address: "/rules", shown: /Failed orders/, control: /^Failed orders is enabled$/, operation: "disableRule" },
  { address: "/rules", shown: /ClickHouse is away/, control: /^Evaluate Failed orders now$/, operation: "retryRule" },
  {
    address: "/rules/new",
    shown: /^(Create rule|This page is for editors)$/,
    control: /^Create rule$/,
    operation: "createRule",
  },
  {
    address: `/rules/${id(1)}/edit`,
    shown: /^Save rule$/,
    control: /^Send test message$/,
    operation: "testRule",
  },
  { address: `/rules/${id(1)}/edit`, shown: /^Save rule$/, control: /^Duplicate$/, operation: "duplicateRule" },
  { address: "/webhooks", shown: /#ops/, control: /^New webhook$/, operation: "createWebhook" },
  { address: "/webhooks", shown: /#ops/, control: /^Test #ops$/, operation: "testWebhook" },
  { address: "/webhooks", shown: /#ops/, control: /^Disable #ops$/, operation: "disableWebhook" },
  { address: "/webhooks", shown: /#ops/, control: /^Delete #ops$/, operation: "deleteWebhook" },
  {
    address: "/webhooks/new",
    shown: /^(Create webhook|This page is for editors)$/,
    control: /^Create webhook$/,
    operation: "createWebhook",
  },
  {
    address: `/webhooks/${id(2)}`,
    shown: /^(Save webhook|This page is for editors)$/,
    control: /^Save webhook$/,
    operation: "updateWebhook",
  },
  {
    address: `/webhooks/${id(2)}`,
    shown: /^(Save webhook|This page is for editors)$/,
    control: /^Rotate secret$/,
    operation: "rotateWebhookSecret",
  },
  { address: "/deliveries", shown: /#ops/, control: /^Send all matching again$/, operation: "retryNotifications" },
  { address: `/deliveries/${id(3)}`, shown: /to #ops$/, control: /^Send again$/, operation: "retryNotification" },
  { address: "/system", shown: /Failed orders/, control: /^Compare Failed orders$/, operation: "reconcileRule" },
  {
    address: "/users",
    shown: /^(New user|This page is for administrators)$/,
    control: /^New user$/,
    operation: "createUser",
  },
  {
    address: "/tokens",
    shown: /^(New token|This page is for administrators)$/,
    control: /^New token$/,
    operation: "createToken",
  },
  { address: "/audit", shown: /^(Show|This page is for administrators)$/, control: /^Show$/, operation: "listAudit" },
  {
    address: "/keys",
    shown: /^(Encryption keys|This page is for administrators)$/,
    control: /^Reload$/,
    operation: "listEncryptionKeys",
  },
];

beforeEach(() => {
  const rule = { ...failed, health: { lastError: "ClickHouse is away" } };
  server.use(
    http.get(api("/rules"), () => HttpResponse.json({ items: [rule] })),
    http.get(api("/rules/:id"), () => HttpResponse.json(rule)),
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [webhook] })),
    http.get(api("/webhooks/:id"), () => HttpResponse.json(webhook)),
    http.get(api("/notifications"), () => HttpResponse.json({ items: [message] })),
    http.get(api("/notifications/:id"), () => HttpResponse.json({ ...message, attempts: [] })),
    http.get(api("/replicas"), () => HttpResponse.json({ items: [] })),
    http.get(api("/users"), () => HttpResponse.json({ items: [] })),
    http.get(api("/tokens"), () => HttpResponse.json({ items: [] })),
    http.get(api("/encryption-keys"), () => HttpResponse.json({ items: [] })),
    http.get(api("/audit"), () => HttpResponse.json({ items: [] })),
  );
});

/** The controls with a name that can be pressed: a disabled one cannot. */
const pressable = (name: RegExp) =>
  (["button", "link", "switch"] as const)
    .flatMap((role) => screen.queryAllByRole(role, { name }))
    .filter((control) => !control.matches(":disabled, fieldset:disabled *"));

test.each(roles.map(({ value }) => value))("pages offer what the API lets a role do: %s", async (role) => {
  server.use(
    http.get(api("/me"), () => HttpResponse.json({ kind: "user", id: "u9", name: "Vi", role, tenant: "default" })),
  );
  for (const address of new Set(offers.map((offer) => offer.address))) {
    const { unmount } = open(address);
    for (const { shown, control, operation } of offers.filter((offer) => offer.address === address)) {
      await waitFor(() => expect(screen.queryAllByText(shown), `${address} as ${role}`).not.toHaveLength(0));
      const want = mayCall({ kind: "user", name: "Vi", role, tenant: "default" }, operation);
      await waitFor(() => expect(pressable(control).length > 0, `${control} at ${address} as ${role}`).toBe(want));
    }
    unmount();
  }
});

test.each([
  ["the inbox", "/inbox", /^No rules yet$/, /Create your first rule/],
  ["the definition of a rule", `/rules/${id(1)}/edit`, /No webhooks yet/, /^Create one$/],
])(
  "where there is nothing yet, %s does not lead people to a page that they may not use",
  async (_, address, shown, link) => {
    server.use(
      signedInAs("viewer"),
      http.get(api("/alerts/groups"), () => HttpResponse.json({ items: [], asOf: "2026-11-21T13:00:00Z" })),
      http.get(api("/webhooks"), () => HttpResponse.json({ items: [] })),
      http.get(api("/rules/names"), () => HttpResponse.json({ items: [] })),
    );
    open(address);
    expect((await screen.findAllByText(shown)).length).toBeGreaterThan(0);
    await waitFor(() => expect(screen.queryByRole("link", { name: link })).toBeNull());
  },
);
