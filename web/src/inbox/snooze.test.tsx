import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import type { Alert } from "../api/client";
import { anAlert, api, held, open, problem, startWorld } from "../test/world";

const { server, world } = startWorld();

/** Stores snoozes as the server does, and the requested instants. */
function snoozing() {
  const asked: string[] = [];
  const find = (id: unknown) => world.alerts.find((alert) => alert.id === id) as Alert;
  server.use(
    http.post(api("/alerts/:id/snooze"), async ({ params, request }) => {
      const { until } = (await request.json()) as { until: string };
      asked.push(until);
      const alert = find(params.id);
      Object.assign(alert, { snoozedUntil: until, snoozedBy: "ada@example.com" });
      return HttpResponse.json(alert);
    }),
    http.post(api("/alerts/:id/unsnooze"), ({ params }) => {
      asked.push("no more");
      const alert = find(params.id);
      delete alert.snoozedUntil;
      delete alert.snoozedBy;
      return HttpResponse.json(alert);
    }),
  );
  return asked;
}

const row = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link")[0];

test("an alert is snoozed, shown so, and woken", async () => {
  world.alerts = [anAlert(5)];
  const asked = snoozing();
  const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
  await user.click(await screen.findByRole("button", { name: "Snooze" }));
  const dialog = await screen.findByRole("dialog", { name: "Snooze this alert" });
  await user.selectOptions(within(dialog).getByRole("combobox", { name: "How long" }), "For 4 hours");
  const before = Date.now();
  await user.click(within(dialog).getByRole("button", { name: "Snooze" }));
  await waitFor(() => expect(row()).toHaveTextContent("Snoozed until"));
  const hours = (Date.parse(asked[0] ?? "") - before) / 3_600_000;
  expect(hours).toBeGreaterThanOrEqual(4);
  expect(hours).toBeLessThan(4.1);
  await user.click(await screen.findByRole("button", { name: "End snooze" }));
  await waitFor(() => expect(row()).not.toHaveTextContent("Snoozed until"));
  expect(asked[1]).toBe("no more");
});

test("a morning that was chosen before midnight is the one that is sent after it", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date(2026, 10, 18, 23, 59) });
  world.alerts = [anAlert(5)];
  const asked = snoozing();
  const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
  await user.click(await screen.findByRole("button", { name: "Snooze" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Snooze this alert" }));
  const choice = dialog.getByRole("option", { name: /^Until tomorrow/ });
  await user.selectOptions(dialog.getByRole("combobox", { name: "How long" }), choice);
  vi.setSystemTime(new Date(2026, 10, 19, 0, 1));
  await user.click(dialog.getByRole("button", { name: "Snooze" }));
  await waitFor(() => expect(asked).toEqual([new Date(2026, 10, 19, 9).toISOString()]));
});

test("what the server refuses is said where it was asked for", async () => {
  world.alerts = [anAlert(5)];
  snoozing();
  const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
  await user.click(await screen.findByRole("button", { name: "Snooze" }));
  const dialog = await screen.findByRole("dialog", { name: "Snooze this alert" });
  await user.selectOptions(within(dialog).getByRole("combobox", { name: "How long" }), "Until a specific time");
  await user.click(within(dialog).getByRole("button", { name: "Snooze" }));
  expect(await within(dialog).findByText("Choose a time.")).toBeVisible();
  await user.selectOptions(within(dialog).getByRole("combobox", { name: "How long" }), "For 1 hour");
  server.use(
    http.post(api("/alerts/:id/snooze"), () =>
      problem(503, { code: "unavailable", detail: "Postgres cannot be reached." }),
    ),
  );
  await user.click(within(dialog).getByRole("button", { name: "Snooze" }));
  expect(await within(dialog).findByText(/^Postgres cannot be reached\./)).toBeVisible();
});

test("a time that the server refuses is said with the reason", async () => {
  world.alerts = [anAlert(5)];
  const errors = [{ field: "until", code: "out_of_range", message: "Must be in the future" }];
  server.use(http.post(api("/alerts/:id/snooze"), () => problem(400, { detail: "The snooze is not valid", errors })));
  const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
  await user.click(await screen.findByRole("button", { name: "Snooze" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Snooze this alert" }));
  await user.click(dialog.getByRole("button", { name: "Snooze" }));
  expect(await dialog.findByText("Until: Must be in the future")).toBeVisible();
});

test("snoozed alerts can be left out", async () => {
  world.alerts = [anAlert(5)];
  const asked: (string | null)[] = [];
  server.events.on("request:start", ({ request }) => {
    const url = new URL(request.url);
    if (url.pathname.endsWith("/alerts")) asked.push(url.searchParams.get("snoozed"));
  });
  const { user, router } = open("/inbox?fold=none");
  await user.click(await screen.findByRole("button", { name: /More/ }));
  await user.selectOptions(await screen.findByRole("combobox", { name: "Snoozed" }), "Not snoozed");
  await user.click(screen.getByRole("button", { name: "Apply" }));
  await waitFor(() => expect(router.state.location.search).toMatchObject({ snoozed: "no" }));
  await waitFor(() => expect(asked.at(-1)).toBe("false"));
  server.events.removeAllListeners();
});

test("what the server refuses is said although the dialog was closed meanwhile", async () => {
  world.alerts = [anAlert(5)];
  const { released, release } = held();
  server.use(
    http.post(api("/alerts/:id/snooze"), async () => {
      await released;
      return problem(409, { code: "conflict", detail: "The alert is resolved; a resolved alert cannot be snoozed" });
    }),
  );
  const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
  await user.click(await screen.findByRole("button", { name: "Snooze" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Snooze this alert" }));
  await user.click(dialog.getByRole("button", { name: "Snooze" }));
  await waitFor(() => expect(dialog.getByRole("combobox", { name: "How long" })).toBeDisabled());
  await user.click(dialog.getByRole("button", { name: "Cancel" }));
  release();
  expect(await screen.findByText(/was not snoozed\. The alert is resolved;/)).toBeVisible();
});

test("an answer to a snooze leaves the dialog open that was opened in the meantime", async () => {
  world.alerts = [anAlert(5)];
  const { released, release } = held();
  let answered = false;
  server.use(
    http.post(api("/alerts/:id/snooze"), async () => {
      await released;
      answered = true;
      return HttpResponse.json(world.alerts[0]);
    }),
  );
  const { user, cache } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
  await user.click(await screen.findByRole("button", { name: "Snooze" }));
  const first = within(await screen.findByRole("dialog", { name: "Snooze this alert" }));
  await user.click(first.getByRole("button", { name: "Snooze" }));
  await user.click(first.getByRole("button", { name: "Cancel" }));
  await user.click(await screen.findByRole("button", { name: "Snooze" }));
  await screen.findByRole("dialog", { name: "Snooze this alert" });
  release();
  await waitFor(() => expect([answered, cache.isMutating()]).toEqual([true, 0]));
  expect(screen.getByRole("dialog", { name: "Snooze this alert" })).toBeVisible();
});
