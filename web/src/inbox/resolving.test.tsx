import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { AlertSelection } from "../api/client";
import { anAlert, api, open, startWorld } from "../test/world";

const { server, world } = startWorld();

const count = { observed: 7, threshold: 5, windowSeconds: 600 };

test("an alert over a window is resolved for a time that the person chooses", async () => {
  const alert = anAlert(5, { route: "import" });
  world.alerts = [{ ...alert, count }];
  const asked: AlertSelection[] = [];
  server.use(
    http.post(api("/alerts/resolve"), async ({ request }) => {
      const selection = (await request.json()) as AlertSelection;
      asked.push(selection);
      const undoableUntil = new Date(Date.now() + 600_000).toISOString();
      const none = { already: 0, refused: 0, unknown: 0 };
      return HttpResponse.json({ actionId: selection.actionId, changed: 1, ...none, undoableUntil });
    }),
  );
  const { user } = open(`/inbox/${alert.id}`);
  await user.click(await screen.findByRole("button", { name: "Resolve for…" }));
  const dialog = within(await screen.findByRole("dialog"));
  const time = dialog.getByLabelText("Duration");
  await user.clear(time);
  await user.click(dialog.getByRole("button", { name: "Resolve" }));
  expect(await screen.findByText("Must be from 1 min to 30 d")).toBeVisible();
  expect(asked).toHaveLength(0);
  await user.type(time, "2");
  const before = Date.now();
  await user.click(dialog.getByRole("button", { name: "Resolve" }));
  await waitFor(() => expect(asked).toHaveLength(1));
  const hours = (Date.parse(asked[0]?.holdUntil ?? "") - before) / 3_600_000;
  expect(asked[0]?.ids).toEqual([alert.id]);
  expect(hours).toBeCloseTo(2, 1);
  expect(screen.queryByRole("dialog")).toBeNull();
});
