import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { Alert } from "../api/client";
import { anAlert, api, aStatus, open, problem, signedInAs, startWorld } from "../test/world";

const { server, world } = startWorld();

const actionId = "0192f0c1-0000-7000-8000-000000000077";

function reopenable(alerts = 1, forMs = 300_000): Partial<Alert> {
  return { reopenable: { actionId, alerts, until: new Date(Date.now() + forMs).toISOString() } };
}

/** Undoes as the server does, and returns the ids of the undone actions. */
function undoing(restored = 1, skipped = 0) {
  const undone: unknown[] = [];
  server.use(
    http.post(api("/alerts/actions/:id/undo"), ({ params }) => {
      undone.push(params.id);
      if (restored > 0) {
        for (const alert of world.alerts) {
          alert.state = "FIRING";
          delete alert.reopenable;
        }
      }
      return HttpResponse.json({ actionId: params.id, restored, skipped });
    }),
  );
  return undone;
}

test("an alert that the reader has resolved is reopened by its button", async () => {
  const alert = anAlert(5, { route: "a-", state: "RESOLVED", ...reopenable() });
  world.alerts = [alert];
  const undone = undoing();
  const { user } = open(`/inbox/${alert.id}?fold=none&state=resolved`);
  await user.click(await screen.findByRole("button", { name: /^Reopen/ }));
  await screen.findByText("orders · a- reopened.");
  expect(undone).toEqual([actionId]);
  expect(await screen.findByRole("button", { name: /^Acknowledge/ })).toBeVisible();
  await waitFor(() => expect(screen.queryByRole("button", { name: /^Reopen/ })).toBeNull());
});

test("the key reopens the alert under the cursor, and the help of keys names it", async () => {
  world.alerts = [anAlert(5, { route: "a-", state: "ACKNOWLEDGED", ...reopenable() })];
  const undone = undoing();
  const { user } = open("/inbox?fold=none&state=acknowledged");
  const list = await screen.findByRole("list", { name: "Alerts" });
  await waitFor(() => expect(within(list).getAllByRole("link")).toHaveLength(1));
  await user.keyboard("j?");
  const help = await screen.findByRole("dialog", { name: "Keyboard shortcuts" });
  expect(within(help).getByText("Reopen this alert")).toBeVisible();
  await user.click(within(help).getByRole("button", { name: "Close" }));
  await user.keyboard("o");
  await screen.findByText("orders · a- reopened.");
  expect(undone).toEqual([actionId]);
  await user.keyboard("o");
  expect(undone).toHaveLength(1);
});

test("the button says how many alerts were changed together, and the message how many stay", async () => {
  const alert = anAlert(5, { state: "ACKNOWLEDGED", ...reopenable(37) });
  world.alerts = [alert];
  undoing(35, 2);
  const { user } = open(`/inbox/${alert.id}?fold=none&state=acknowledged`);
  await user.click(await screen.findByRole("button", { name: /^Reopen 37 alerts/ }));
  await screen.findByText("35 alerts reopened. 2 alerts changed in the meantime and stay as they are.");
});

test("it is not offered when the time is over, to viewers, and for what others did", async () => {
  const late = anAlert(5, { state: "RESOLVED", ...reopenable(1, -1000) });
  world.alerts = [late, anAlert(6, { state: "RESOLVED" })];
  const first = open(`/inbox/${late.id}?fold=none&state=resolved`);
  expect(await screen.findByText("Timeline")).toBeVisible();
  expect(screen.queryByRole("button", { name: /^Reopen/ })).toBeNull();
  first.unmount();
  const other = open(`/inbox/${world.alerts[1]?.id}?fold=none&state=resolved`);
  expect(await screen.findByText("Timeline")).toBeVisible();
  expect(screen.queryByRole("button", { name: /^Reopen/ })).toBeNull();
  other.unmount();
  const mine = anAlert(5, { state: "RESOLVED", ...reopenable() });
  world.alerts = [mine];
  server.use(signedInAs("viewer"));
  open(`/inbox/${mine.id}?fold=none&state=resolved`);
  expect(await screen.findByText("Timeline")).toBeVisible();
  expect(screen.queryByRole("button", { name: /^Reopen/ })).toBeNull();
});

test("a reader sees why an alert was not reopened", async () => {
  const alert = anAlert(5, { route: "a-", state: "RESOLVED", ...reopenable() });
  world.alerts = [alert];
  undoing(0, 1);
  const { user } = open(`/inbox/${alert.id}?fold=none&state=resolved`);
  await user.click(await screen.findByRole("button", { name: /^Reopen/ }));
  await screen.findByText("orders · a- was not reopened: it has changed, or another alert is open in its place.");
  server.use(
    http.post(api("/alerts/actions/:id/undo"), () =>
      problem(409, { code: "conflict", detail: "It was done more than 10 minutes ago and can no longer be undone." }),
    ),
  );
  await user.click(await screen.findByRole("button", { name: /^Reopen/ }));
  expect(await screen.findByText(/was not reopened. It was done more than 10 minutes ago/)).toBeVisible();
});

/** What the server says the time is, some hours from this clock. */
function serverAt(hours: number) {
  const now = () => new Date(Date.now() + hours * 3_600_000).toISOString();
  server.use(http.get(api("/status"), () => HttpResponse.json({ ...aStatus(), now: now() })));
}

test("it is offered by the server's clock: for as long as the server would do it", async () => {
  const hour = 3_600_000;
  const alert = anAlert(5, { state: "RESOLVED", ...reopenable(1, 300_000 - hour) });
  world.alerts = [alert];
  serverAt(-1);
  const behind = open(`/inbox/${alert.id}?fold=none&state=resolved`);
  expect(await screen.findByRole("button", { name: /^Reopen/ })).toBeVisible();
  behind.unmount();
  Object.assign(alert, reopenable(1, hour - 1_000));
  serverAt(1);
  const ahead = open(`/inbox/${alert.id}?fold=none&state=resolved`);
  await waitFor(() => expect(ahead.cache.getQueryData(["status"])).toBeDefined());
  expect(await screen.findByText("Timeline")).toBeVisible();
  await waitFor(() => expect(screen.queryByRole("button", { name: /^Reopen/ })).toBeNull());
});
