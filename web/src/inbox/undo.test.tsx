import { QueryClientProvider } from "@tanstack/react-query";
import { act, render, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, expect, test, vi } from "vitest";
import { createCache } from "../api/cache";
import type { Alert, AlertSelection } from "../api/client";
import { systemStatus } from "../api/status";
import { anAlert, api, aStatus, open, problem, startWorld } from "../test/world";
import { ToastProvider } from "../ui/toast";
import { UndoProvider, useUndo } from "./undo";

const { server, world } = startWorld();

let undone: unknown[];
const find = (id: unknown) => world.alerts.find((alert) => alert.id === id) as Alert;

beforeEach(() => {
  undone = [];
  world.alerts = [anAlert(5, { route: "a-" }), anAlert(6, { route: "b-" })];
  server.use(
    http.post(api("/alerts/:id/assign"), async ({ params, request }) => {
      const { assignee } = (await request.json()) as { assignee: string };
      const assignedAt = new Date().toISOString();
      return HttpResponse.json(Object.assign(find(params.id), { assignee, assignedAt, assignedBy: assignee }));
    }),
    http.post(api("/alerts/:id/snooze"), async ({ params, request }) => {
      const { until } = (await request.json()) as { until: string };
      return HttpResponse.json(Object.assign(find(params.id), { snoozedUntil: until, snoozedBy: "ada@example.com" }));
    }),
    http.post(api("/alerts/actions/:id/undo"), ({ params }) => {
      undone.push(params.id);
      return HttpResponse.json({ actionId: params.id, restored: 1, skipped: 0 });
    }),
  );
});

/** Acknowledges the open alert, whose undo is then offered. */
async function acknowledged() {
  const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
  await user.click(await screen.findByRole("button", { name: /^Acknowledge/ }));
  await screen.findByText("orders · a- acknowledged.");
  return user;
}

test("after an assignment of one alert, the key undoes nothing older", async () => {
  const user = await acknowledged();
  await user.keyboard("m");
  await screen.findByRole("button", { name: "Unassign" });
  expect(screen.queryByRole("button", { name: "Undo" })).toBeNull();
  await user.keyboard("z");
  await screen.findByText("Nothing to undo.");
  expect(undone).toEqual([]);
});

test("after a snooze of one alert, the key undoes nothing older", async () => {
  const user = await acknowledged();
  await user.keyboard("s");
  const dialog = await screen.findByRole("dialog", { name: "Snooze this alert" });
  await user.click(within(dialog).getByRole("button", { name: "Snooze" }));
  await screen.findByRole("button", { name: "End snooze" });
  await user.keyboard("z");
  await screen.findByText("Nothing to undo.");
  expect(undone).toEqual([]);
});

test("an action is undone although the server's clock is far behind", async () => {
  const long = new Date(Date.now() - 3_600_000).toISOString();
  server.use(
    http.post(api("/alerts/acknowledge"), () =>
      HttpResponse.json({ actionId: "a1", changed: 1, already: 0, refused: 0, unknown: 0, undoableUntil: long }),
    ),
  );
  const user = await acknowledged();
  await user.keyboard("z");
  await screen.findByText("1 alert restored.");
  expect(undone).toEqual(["a1"]);
});

test("the key undoes the action that was taken last, also if its answer came first", async () => {
  const orders: AlertSelection[] = [];
  let answerFirst = () => {};
  const first = new Promise<void>((resolve) => {
    answerFirst = resolve;
  });
  server.use(
    http.post(api("/alerts/acknowledge"), async ({ request }) => {
      const order = (await request.json()) as AlertSelection;
      orders.push(order);
      if (orders.length === 1) await first;
      const undoableUntil = new Date(Date.now() + 600_000).toISOString();
      const { actionId } = order;
      return HttpResponse.json({ actionId, changed: 1, already: 0, refused: 0, unknown: 0, undoableUntil });
    }),
  );
  const { user } = open("/inbox?fold=none");
  const list = await screen.findByRole("list", { name: "Alerts" });
  await waitFor(() => expect(within(list).getAllByRole("link")).toHaveLength(2));
  await user.keyboard("ja");
  await waitFor(() => expect(orders).toHaveLength(1));
  await user.keyboard("a");
  await screen.findByText("orders · b- acknowledged.");
  answerFirst();
  await screen.findByText("orders · a- acknowledged.");
  expect(screen.getAllByRole("button", { name: "Undo" })).toHaveLength(1);
  await user.keyboard("z");
  await screen.findByText("1 alert restored.");
  expect(undone).toEqual([orders[1]?.actionId]);
});

const hourMs = 3_600_000;
const later = (ms: number) => new Date(Date.now() + ms).toISOString();

let undo: ReturnType<typeof useUndo>;

function Actor() {
  undo = useUndo();
  return null;
}

test("an undo is offered for as long as the server allows it, although this clock is wrong", () => {
  vi.useFakeTimers();
  const cache = createCache();
  cache.setQueryData(systemStatus().queryKey, { ...aStatus(), now: later(hourMs) } as never);
  render(
    <QueryClientProvider client={cache}>
      <ToastProvider>
        <UndoProvider>
          <Actor />
        </UndoProvider>
      </ToastProvider>
    </QueryClientProvider>,
  );
  const undoable = { actions: ["a1"], until: later(hourMs + 600_000) };
  act(() => undo.offer("Acknowledged.", undoable, { place: undo.take() }));
  act(() => void vi.advanceTimersByTime(599_000));
  expect(screen.getByRole("button", { name: "Undo" })).toBeVisible();
  act(() => void vi.advanceTimersByTime(2_000));
  expect(screen.queryByRole("button", { name: "Undo" })).toBeNull();
});

test.each([
  ["behind", -hourMs, 600_000, 1],
  ["ahead", hourMs, -1_000, 0],
])(
  "after an undo that failed, it is offered again by the server's clock, which is %s",
  async (_, by, leftMs, times) => {
    server.use(
      http.get(api("/status"), () => HttpResponse.json({ ...aStatus(), now: later(by) })),
      http.post(api("/alerts/acknowledge"), () =>
        HttpResponse.json({
          actionId: "a1",
          changed: 1,
          already: 0,
          refused: 0,
          unknown: 0,
          undoableUntil: later(by + leftMs),
        }),
      ),
      http.post(api("/alerts/actions/:id/undo"), () => problem(500, { code: "internal", detail: "It broke." })),
    );
    const { user, cache } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
    await waitFor(() => expect(cache.getQueryData(systemStatus().queryKey)).toBeDefined());
    await user.click(await screen.findByRole("button", { name: /^Acknowledge/ }));
    await screen.findByText("orders · a- acknowledged.");
    await user.keyboard("z");
    await screen.findByText(/^Not undone\. It broke\./, {}, { timeout: 8_000 });
    expect(screen.queryAllByRole("button", { name: "Undo" })).toHaveLength(times);
  },
);
