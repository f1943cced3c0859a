import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test } from "vitest";
import type { RuleReplay } from "../api/client";
import { aRule, noPreview } from "../test/rules";
import { anAlert, api, countsOf, held, open, problem, startWorld, streams } from "../test/world";
import { evaluated, rangeOf, replayWords } from "./replay";

const { server } = startWorld();
const rule = aRule({ webhookIds: ["0192f0c1-0000-7000-8000-000000000002"] });
const address = `/rules/${rule.id}`;
let replays: RuleReplay[] = [];
let started: unknown[] = [];

const aReplay = (change: Partial<RuleReplay> = {}): RuleReplay => ({
  id: "0192f0c1-0000-7000-8000-000000000901",
  state: "RUNNING",
  from: "2026-11-20T00:00:00Z",
  to: "2026-11-21T00:00:00Z",
  at: "2026-11-20T06:00:00Z",
  messages: "EACH",
  matched: 5,
  alerts: 2,
  createdAt: "2026-11-21T14:00:00Z",
  createdBy: "ada@example.com",
  ...change,
});

beforeEach(() => {
  replays = [];
  started = [];
  server.use(
    http.get(api("/rules/:id"), () => HttpResponse.json(rule)),
    http.get(api("/rules/:id/activity"), () =>
      HttpResponse.json({ from: "2026-11-20T14:00:00Z", bucketSeconds: 900, complete: true, buckets: [0, 0] }),
    ),
    http.get(api("/rules/:id/history"), () => HttpResponse.json({ items: [] })),
    http.get(api("/notifications"), () => HttpResponse.json({ items: [] })),
    http.get(api("/rules/:id/replays"), () => HttpResponse.json({ items: replays })),
    http.post(api("/rules/:id/replays/preview"), () =>
      HttpResponse.json({
        existing: 2,
        preview: { ...noPreview, alerts: 5, newest: [anAlert(60, { title: "ERP refused" })] },
      }),
    ),
    http.post(api("/rules/:id/replays"), async ({ request }) => {
      started.push(await request.json());
      replays = [aReplay()];
      return HttpResponse.json(replays[0], { status: 201 });
    }),
    http.post(api("/replays/:id/cancel"), () => {
      replays = [aReplay({ state: "CANCELLED", endedAt: "2026-11-21T14:01:00Z", endedBy: "ada@example.com" })];
      return HttpResponse.json(replays[0]);
    }),
  );
});

const section = async () => within(await screen.findByRole("region", { name: "Replay" }));

test("a replay that was started elsewhere is noticed with the alerts that it raises", async () => {
  open(address);
  const replay = await section();
  await replay.findByRole("button", { name: "Start replay" });
  replays = [aReplay()];
  streams.at(-1)?.tell(countsOf([]), []);
  await replay.findByText(/^Running: 2 alerts raised/);
});

test("a replay is previewed, started, followed and cancelled", async () => {
  const { user } = open(address);
  const replay = await section();
  const start = await replay.findByRole("button", { name: "Start replay" });
  expect(start).toBeDisabled();
  fireEvent.change(replay.getByLabelText(/Started at or after/), { target: { value: "2026-11-20T00:00" } });
  fireEvent.change(replay.getByLabelText(/Started before/), { target: { value: "2026-11-21T00:00" } });
  await user.click(replay.getByRole("button", { name: "Preview replay" }));
  await waitFor(() =>
    expect(replay.getByRole("status")).toHaveTextContent(/5 exchanges match, 2 of them with an alert.*3 alerts/),
  );
  expect(replay.getByRole("heading", { name: "Alerts to raise" })).toBeVisible();
  expect(replay.getByText("ERP refused")).toBeVisible();
  await user.click(replay.getByLabelText("One per alert"));
  expect(replay.getByRole("status")).toHaveTextContent("3 messages will be sent.");
  await user.click(start);
  expect(await replay.findByText("Running: 2 alerts raised, 5 exchanges matched")).toBeVisible();
  expect(started).toEqual([
    {
      from: new Date("2026-11-20T00:00").toISOString(),
      to: new Date("2026-11-21T00:00").toISOString(),
      messages: "EACH",
    },
  ]);
  expect(replay.getByRole("progressbar", { name: "Evaluated so far" })).toHaveAttribute("value", "0.25");
  expect(replay.queryByRole("button", { name: "Start replay" })).toBeNull();
  await user.click(replay.getByRole("button", { name: "Cancel replay" }));
  expect(await replay.findByText(/^Cancelled:/)).toBeVisible();
  expect(replay.getByText(/cancelled by ada@example\.com/)).toBeVisible();
});

test("another range needs another preview, and a refusal is shown", async () => {
  server.use(
    http.post(api("/rules/:id/replays"), () =>
      problem(409, { code: "conflict", detail: "a replay of the rule is running" }),
    ),
  );
  const { user } = open(address);
  const replay = await section();
  fireEvent.change(await replay.findByLabelText(/Started at or after/), { target: { value: "2026-11-20T00:00" } });
  fireEvent.change(replay.getByLabelText(/Started before/), { target: { value: "2026-11-20T00:00" } });
  expect(replay.getByText("Must be after the start")).toBeVisible();
  expect(replay.getByRole("button", { name: "Preview replay" })).toBeDisabled();
  fireEvent.change(replay.getByLabelText(/Started before/), { target: { value: "2026-11-21T00:00" } });
  await user.click(replay.getByRole("button", { name: "Preview replay" }));
  await waitFor(() => expect(replay.getByRole("button", { name: "Start replay" })).toBeEnabled());
  await user.click(replay.getByRole("button", { name: "Start replay" }));
  expect(await replay.findByRole("alert")).toHaveTextContent(/a replay of the rule is running/i);
  fireEvent.change(replay.getByLabelText(/Started before/), { target: { value: "2026-11-22T00:00" } });
  expect(replay.getByRole("button", { name: "Start replay" })).toBeDisabled();
});

test("its buttons keep the focus while they run", async () => {
  const [previewing, starting] = [held(), held()];
  server.use(
    http.post(api("/rules/:id/replays/preview"), async () => {
      await previewing.released;
      return HttpResponse.json({ existing: 2, preview: { ...noPreview, alerts: 5 } });
    }),
    http.post(api("/rules/:id/replays"), async () => {
      await starting.released;
      return problem(409, { code: "conflict", detail: "A replay of the rule is running" });
    }),
  );
  const { user } = open(address);
  const replay = await section();
  fireEvent.change(await replay.findByLabelText(/Started at or after/), { target: { value: "2026-11-20T00:00" } });
  fireEvent.change(replay.getByLabelText(/Started before/), { target: { value: "2026-11-21T00:00" } });
  const runs = async (name: string, release: () => void) => {
    const button = replay.getByRole("button", { name });
    await waitFor(() => expect(button).toBeEnabled());
    await user.click(button);
    await waitFor(() => expect(button).toHaveAttribute("aria-disabled", "true"));
    expect(button).toBeEnabled();
    release();
    await waitFor(() => expect(button).not.toHaveAttribute("aria-disabled"));
    expect(button).toHaveFocus();
  };
  await runs("Preview replay", previewing.release);
  await runs("Start replay", starting.release);
});

test("the reason why a replay was stopped is shown", async () => {
  replays = [aReplay({ state: "STOPPED", problem: "The scope or filter of the rule was changed." })];
  open(address);
  const replay = await section();
  expect(await replay.findByText("The scope or filter of the rule was changed.")).toBeVisible();
  expect(replay.queryByRole("progressbar")).toBeNull();
});

test("a replay that cannot be offered says why", async () => {
  server.use(http.get(api("/rules/:id"), () => HttpResponse.json({ ...rule, enabled: false })));
  open(address);
  expect(await (await section()).findByText("No replays yet. Enable the rule to start one.")).toBeVisible();
});

test("ranges and figures", () => {
  expect(rangeOf("2026-11-20T00:00", "2026-11-20T00:00")).toBeUndefined();
  expect(rangeOf("", "2026-11-20T00:00")).toBeUndefined();
  expect(evaluated(aReplay({ state: "DONE" }))).toBe(1);
  const previewed = { existing: 0, preview: { ...noPreview, alerts: 1, truncated: true } };
  expect(replayWords(previewed, "DIGEST", 2)).toMatch(
    /^1 exchange matches, 0 of them.*1 alert\. 2 digests will be sent when it ends\. Only exchanges that started since/,
  );
  const many = { existing: 3, preview: { ...noPreview, alerts: 5003 } };
  expect(replayWords(many, "DIGEST", 1)).toContain(" 1 digest will be sent when it ends.");
  expect(replayWords({ ...many, existing: 2 }, "DIGEST", 2)).toContain("Up to 4 digests will be sent when it ends.");
  expect(replayWords({ ...many, existing: 5003 }, "DIGEST", 2)).toContain("0 digests");
  expect(replayWords(previewed, "NONE", 2)).toContain("No messages are sent, except about");
  expect(replayWords(previewed, "DIGEST", undefined)).toContain("to the webhooks that the routing policy chooses.");
  expect(replayWords(previewed, "EACH", undefined)).toContain("to the webhooks that the routing policy chooses.");
});
