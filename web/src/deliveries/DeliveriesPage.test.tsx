import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, describe, expect, test } from "vitest";
import type { Notification } from "../api/client";
import { api, held, open, problem, startWorld } from "../test/world";

const { server } = startWorld();
const at = new Date(Date.now() - 60_000).toISOString();
const id = (n: number) => `0192f0c1-0000-7000-8000-00000000000${n}`;

const exhausted: Notification = {
  id: id(1),
  alertId: id(8),
  alertTitle: "orders · order-to-erp: FAILED",
  ruleId: id(9),
  webhookId: id(7),
  webhookName: "#ops",
  reason: "FIRED",
  status: "EXHAUSTED",
  attemptCount: 2,
  verdicts: ["UNKNOWN", "RETRY"],
  createdAt: at,
  settledAt: at,
  lastError: "the receiver answered 500",
};

const whole: Notification = {
  ...exhausted,
  attempts: [
    { number: 1, startedAt: at, verdict: "UNKNOWN" },
    {
      number: 2,
      startedAt: new Date(Date.parse(at) + 2_000).toISOString(),
      verdict: "RETRY",
      statusCode: 500,
      durationMs: 12.5,
      request: {
        method: "POST",
        host: "hooks.example.com",
        headers: [
          { name: "Authorization", masked: true },
          { name: "Webhook-Id", value: id(1) },
        ],
        bodySha256: "ab12",
        bodyBytes: 1635,
      },
      responseHead: { statusLine: "HTTP/1.1 500 Internal Server Error", headers: [] },
      response: "down",
    },
  ],
  retries: [{ at: new Date(Date.parse(at) + 1_000).toISOString(), by: "Ada" }],
};

let items: Notification[];
let asked: URLSearchParams[];

beforeEach(() => {
  items = [exhausted];
  asked = [];
  server.use(
    http.get(api("/notifications"), ({ request }) => {
      asked.push(new URL(request.url).searchParams);
      return HttpResponse.json({ items });
    }),
    http.get(api("/notifications/:id"), () => HttpResponse.json(whole)),
    http.get(api("/rules/names"), () =>
      HttpResponse.json({ items: [{ id: id(9), name: "Failed orders", enabled: true }] }),
    ),
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [{ id: id(7), name: "#ops", kind: "slack" }] })),
  );
});

const row = () => screen.findByRole("link", { name: /#ops · Alert/ });

describe("deliveries", () => {
  test("show what became of each message, and where it went", async () => {
    open("/deliveries");
    expect(await row()).toHaveTextContent(
      /Exhausted.*#ops · Alert · Failed orders.*order-to-erp: FAILED.*answered 500.*\?✗/,
    );
    expect(screen.getByRole("img", { name: "2 attempts: unknown, not delivered" })).toBeVisible();
    expect(screen.getByText("Completed or next attempt")).toBeVisible();
  });

  test("are narrowed by the address", async () => {
    const { user, router } = open(`/deliveries?status=failed&webhook=${id(7)}`);
    await row();
    expect(asked[0]?.getAll("status")).toEqual(["FAILED"]);
    expect(asked[0]?.getAll("webhookId")).toEqual([id(7)]);
    await user.selectOptions(screen.getByRole("combobox", { name: "Created" }), "Last hour");
    await waitFor(() => expect(asked.at(-1)?.get("from")).toBeTruthy());
    expect(router.state.location.searchStr).toBe(`?status=failed&webhook=${id(7)}&within=1h`);
  });

  test("to one webhook have charts, whose lines are named", async () => {
    const buckets = [1, 2].map((n) => ({ delivered: n, failed: 0, medianMs: 10 * n, p95Ms: 90 * n }));
    server.use(
      http.get(api("/webhooks/:id/activity"), () =>
        HttpResponse.json({ from: at, bucketSeconds: 3600, complete: true, buckets }),
      ),
    );
    open(`/deliveries?webhook=${id(7)}`);
    expect(await screen.findByText("95th percentile")).toBeVisible();
    expect(screen.getByText("Median")).toBeVisible();
  });

  test("show each attempt's request and answer, without secrets, and who sent it again", async () => {
    const { user } = open("/deliveries");
    await user.click(await row());
    expect(await screen.findByText("attempt 2 · HTTP 500 · 12.5 ms")).toBeVisible();
    const steps = screen.getAllByRole("listitem").map((item) => item.textContent ?? "");
    expect(steps.at(-2)).toMatch(/Sent again by Ada/);
    expect(screen.getByText("POST hooks.example.com")).toBeVisible();
    expect(screen.getByText("Authorization").nextSibling).toHaveTextContent("••••••");
    expect(screen.getByText("HTTP/1.1 500 Internal Server Error")).toBeVisible();
    const about = await screen.findByRole("link", { name: "orders · order-to-erp: FAILED" });
    expect(about).toHaveAttribute("href", expect.stringContaining(`/inbox/${id(8)}`));
  });

  test("are sent again one by one", async () => {
    let retried = "";
    server.use(
      http.post(api("/notifications/:id/retry"), ({ params }) => {
        retried = String(params.id);
        return HttpResponse.json({ ...exhausted, status: "PENDING" });
      }),
    );
    const { user } = open(`/deliveries/${id(1)}`);
    await user.click(await screen.findByRole("button", { name: "Send again" }));
    expect(await screen.findByText("The message will be sent again.")).toBeVisible();
    expect(retried).toBe(id(1));
  });

  test("that are held say so in a narrow list, and are sent or discarded", async () => {
    const { settledAt: _, ...waiting } = exhausted;
    items = [
      { ...waiting, status: "PENDING", attemptCount: 0, quietUntil: new Date(Date.now() + 7_200_000).toISOString() },
    ];
    const held = items[0];
    const asked: string[] = [];
    server.use(
      http.get(api("/notifications/:id"), () => HttpResponse.json(held)),
      http.post(api("/notifications/:id/:action"), ({ params }) => {
        asked.push(String(params.action));
        return HttpResponse.json(held);
      }),
    );
    const { user } = open(`/deliveries/${id(1)}`);
    expect((await screen.findByText(/^held; due/)).className).not.toMatch(/settled/);
    await user.click(await screen.findByRole("button", { name: "Send now" }));
    expect(await screen.findByText("The message will be sent.")).toBeVisible();
    await user.click(screen.getByRole("button", { name: "Discard" }));
    expect(await screen.findByText("The message was discarded.")).toBeVisible();
    expect(asked).toEqual(["retry", "discard"]);
  });

  test("say why one is not sent again", async () => {
    server.use(
      http.post(api("/notifications/:id/retry"), () =>
        problem(409, { code: "conflict", detail: "The webhook is disabled." }),
      ),
    );
    const { user } = open(`/deliveries/${id(1)}`);
    await user.click(await screen.findByRole("button", { name: "Send again" }));
    expect(await screen.findByText(/^The message was not sent again\. The webhook is disabled\./)).toBeVisible();
  });

  test("are sent again by filter, and the number is shown first", async () => {
    items = [exhausted, { ...exhausted, id: id(2) }];
    let body: unknown;
    server.use(
      http.post(api("/notifications/retry"), async ({ request }) => {
        body = await request.json();
        return HttpResponse.json({ retried: 2, skipped: 1 });
      }),
    );
    const { user } = open(`/deliveries?webhook=${id(7)}`);
    await user.click(await screen.findByRole("button", { name: "Send all matching again" }));
    const dialog = screen.getByRole("dialog");
    await user.click(await within(dialog).findByRole("button", { name: "Send 2 messages again" }));
    expect(await screen.findByText(/2 messages will be sent again. 1 message skipped/)).toBeVisible();
    expect(body).toEqual({ filter: { status: ["FAILED", "EXHAUSTED"], webhookId: [id(7)] } });
  });

  test("are not sent again, and say so although the dialog was closed meanwhile", async () => {
    items = [exhausted, { ...exhausted, id: id(2) }];
    const { released, release } = held();
    server.use(
      http.post(api("/notifications/retry"), async () => {
        await released;
        return problem(409, { code: "conflict", detail: "The webhook is disabled; enable it first" });
      }),
    );
    const { user } = open(`/deliveries?webhook=${id(7)}`);
    await user.click(await screen.findByRole("button", { name: "Send all matching again" }));
    const dialog = within(screen.getByRole("dialog"));
    await user.click(await dialog.findByRole("button", { name: "Send 2 messages again" }));
    await user.click(dialog.getByRole("button", { name: "Cancel" }));
    release();
    expect(await screen.findByText(/^The messages were not sent again\. The webhook is disabled/)).toBeVisible();
  });

  test("are not offered to be sent again where none that matches failed", async () => {
    items = [{ ...exhausted, status: "DELIVERED" }];
    const states: string[][] = [];
    let failed: Notification[] = [];
    server.use(
      http.get(api("/notifications"), ({ request }) => {
        const status = new URL(request.url).searchParams.getAll("status");
        states.push(status);
        return HttpResponse.json({ items: status.length > 0 ? failed : items });
      }),
    );
    const first = open("/deliveries");
    await row();
    await waitFor(() => expect(states).toContainEqual(["FAILED", "EXHAUSTED"]));
    expect(screen.queryByRole("button", { name: "Send all matching again" })).toBeNull();
    first.unmount();
    failed = [exhausted];
    open("/deliveries");
    expect(await screen.findByRole("button", { name: "Send all matching again" })).toBeVisible();
  });

  test("offer nothing to whom may only read", async () => {
    server.use(
      http.get(api("/me"), () => HttpResponse.json({ kind: "user", name: "Vi", role: "viewer", tenant: "default" })),
    );
    open(`/deliveries/${id(1)}`);
    await screen.findByText("POST hooks.example.com");
    expect(screen.queryByRole("button", { name: /again|^Send now/ })).toBeNull();
  });

  test("that are due say what they wait for", async () => {
    const due = { ...exhausted, status: "RETRYING" as const, nextAttemptAt: at };
    const until = new Date(Date.now() + 200_000).toISOString();
    items = [due];
    for (const [health, words] of [
      [{ state: "ok" }, /due now/],
      [{ state: "held", until }, /held; resumes in 3 min/],
      [{ state: "open", until }, /next probe in 3 min/],
      [{ state: "open" }, /next probe soon/],
      [{ state: "off" }, /webhook disabled/],
    ] as const) {
      const webhook = { id: id(7), name: "#ops", kind: "slack", health };
      server.use(http.get(api("/webhooks"), () => HttpResponse.json({ items: [webhook] })));
      const { unmount } = open("/deliveries");
      await waitFor(async () => expect(await row()).toHaveTextContent(words));
      unmount();
    }
  });

  test("leave the arrow keys to what scrolls in an open message", async () => {
    const other = { ...exhausted, id: id(2) };
    items = [exhausted, other];
    const { user, router } = open(`/deliveries/${id(1)}`);
    const response = await screen.findByText("down", { selector: "pre" });
    response.focus();
    await user.keyboard("{ArrowDown}");
    expect(router.state.location.pathname).toBe(`/deliveries/${id(1)}`);
    await user.keyboard("j");
    await waitFor(() => expect(router.state.location.pathname).toBe(`/deliveries/${id(2)}`));
  });

  test("have the focus again when they are closed", async () => {
    items = [exhausted, { ...exhausted, id: id(2) }];
    const { user } = open(`/deliveries/${id(2)}`);
    await screen.findByText("down", { selector: "pre" });
    await user.click(screen.getByRole("link", { name: "Close" }));
    await waitFor(() => expect(document.activeElement).toHaveAttribute("data-delivery", id(2)));
  });

  test("say that there are none", async () => {
    items = [];
    open("/deliveries");
    expect(await screen.findByRole("heading", { name: "No messages yet" })).toBeVisible();
  });
});
