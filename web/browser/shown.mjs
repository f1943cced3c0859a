// A world in which every page has something to show.
import { createStage, rows } from "./stage.mjs";

export const devices = {
  phone: { width: 360, height: 780 },
  desktop: { width: 1440, height: 900 },
  wall: { width: 3840, height: 2160 },
};

/**
 * Creates the world: one rule, its webhook, an alert of it and the message about that, their issue, a silence, and an alert
 * of a rule that counts by the values of an attribute.
 */
export async function createShown() {
  const stage = await createStage();
  try {
    return { stage, ...(await show(stage)) };
  } catch (error) {
    await stage.close();
    throw error;
  }
}

async function show(stage) {
  const { rule, webhook, application } = await stage.rule();
  const [alert] = await stage.fail(application, [
    ...Array.from({ length: 20 }, (_, at) => `export-${at}`),
    ...Array(5).fill("import"),
  ]);
  const groups = await stage.call("GET", `/alerts/groups?by=issue&application=${application}`);
  const { route, signature } = groups.items.find((group) => group.count > 1);
  const issue = `/issue?${new URLSearchParams({ app: application, route, error: signature })}`;
  // Of another application, so that the messages are sent.
  const silence = await stage.call("POST", "/silences", {
    name: "ERP maintenance",
    reason: "The ERP is upgraded.",
    match: { scope: { applications: ["erp-of-nobody"] } },
    recurrence: { timeZone: "Europe/Berlin", weekdays: ["MON"], from: "22:00", durationMinutes: 480 },
  });
  await stage.call(
    "PUT",
    "/teams",
    { teams: [{ name: "Platform", members: ["ada@example.com"], groups: ["sre"], webhookIds: [webhook.id] }] },
    { "If-Match": '"1"' },
  );
  await stage.call(
    "PUT",
    "/routing",
    {
      routes: [
        {
          name: "Critical",
          match: { severities: ["CRITICAL"] },
          webhookIds: [webhook.id],
          continue: true,
          escalation: [{ afterMinutes: 15, webhookIds: [], teams: ["Platform"] }],
        },
        { name: "Tests tell nobody", match: { scope: { environments: ["test*"] } } },
      ],
      defaultWebhookIds: [webhook.id],
    },
    { "If-Match": '"1"' },
  );
  await stage.call("POST", "/views", { name: "Orders", search: "app=orders", shared: true });
  const many = await stage.rule({
    name: "Failures of a customer",
    fireMode: "COUNT_IN_WINDOW",
    threshold: 1,
    windowSeconds: 600,
    groupBy: "ATTRIBUTE",
    groupByAttribute: "customer",
  });
  const [counted] = await stage.counted(many.application, many.rule);
  let message;
  for (const end = Date.now() + 15_000; !message && Date.now() < end; ) {
    [message] = (await stage.call("GET", "/notifications?status=DELIVERED&limit=1")).items;
  }
  return { rule, webhook, alert, message, issue, silence, counted };
}

/** Each page, and what is there once it has come. */
export const pagesOf = ({ rule, webhook, alert, message, issue, silence }, opened) => ({
  "/inbox": rows(opened).first(),
  [`/inbox/${alert.id}`]: opened.getByText("ErpClient.post"),
  "/inbox?q=nothing": opened.getByRole("heading", { name: "No matching alerts" }),
  "/inbox?fold=error": opened.getByRole("button", { name: /×/ }).first(),
  [issue]: opened.getByRole("img", { name: /^Alerts per hour/ }),
  "/deliveries": opened.getByRole("link", { name: /Receiver .* · Alert/ }).first(),
  [`/deliveries/${message.id}`]: opened.getByText(/^HTTP\/1.1 200/),
  "/system": opened.getByRole("row", { name: /serves this page/ }),
  "/routing": opened.getByRole("heading", { name: "Default" }),
  "/wall": opened.getByText(/firing$/).first(),
  "/rules": opened.getByRole("row", { name: new RegExp(rule.name) }),
  "/rules/new": opened.getByLabel(webhook.name),
  [`/rules/${rule.id}`]: opened.getByRole("img", { name: /per 15 minutes/ }),
  [`/rules/${rule.id}/edit`]: opened.getByText(/this would have raised/).first(),
  "/explain": opened.getByLabel("Execution ID"),
  "/webhooks": opened.getByRole("row", { name: new RegExp(webhook.name) }),
  "/webhooks/new": opened.getByRole("button", { name: "Create webhook" }),
  [`/webhooks/${webhook.id}`]: opened.locator(".cm-content"),
  "/silences": opened.getByRole("row", { name: /ERP maintenance/ }),
  "/silences?show=past": opened.getByRole("heading", { name: "No past silences" }),
  [`/silences/new?alert=${alert.id}`]: opened.getByText(/^There were .* alerts?\./),
  [`/silences/${silence.id}`]: opened.getByText("Next windows"),
  "/account": opened.getByText("Administrator", { exact: true }),
  "/users": opened.getByRole("row", { name: /ada@example.com/ }),
  "/teams": opened.getByText("Platform", { exact: true }).first(),
  "/tokens": opened.getByRole("heading", { name: "No API tokens yet" }),
  "/audit": opened.getByText(/created webhook/).first(),
  "/keys": opened.getByRole("row", { name: /Active/ }),
  "/no/such": opened.getByRole("heading", { name: "Page not found" }),
});
