import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { describe, expect, test } from "vitest";
import type { Alert } from "../api/client";
import { anAlert, api, open, problem, startWorld } from "../test/world";

const { server, world } = startWorld();

/** Keeps assignments as the server does, and what was asked for. */
function assigning() {
  const asked: unknown[] = [];
  server.use(
    http.post(api("/alerts/:id/assign"), async ({ params, request }) => {
      const body = (await request.json()) as { assignee: string; was: string };
      asked.push(body);
      const alert = world.alerts.find(({ id }) => id === params.id) as Alert;
      if ((alert.assignee ?? "") !== body.was) {
        return problem(409, { code: "conflict", detail: `The alert is assigned to ${alert.assignee}.` });
      }
      if (body.assignee === "") {
        delete alert.assignee;
        delete alert.assignedAt;
        delete alert.assignedBy;
      } else {
        Object.assign(alert, {
          assignee: body.assignee,
          assignedAt: new Date().toISOString(),
          assignedBy: "ada@example.com",
        });
      }
      return HttpResponse.json(alert);
    }),
  );
  return asked;
}

const row = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link")[0];
const field = () => screen.findByRole("combobox", { name: "Assigned to" });

describe("an alert", () => {
  test("is taken and given back, and the list shows who has it", async () => {
    world.alerts = [anAlert(5)];
    const asked = assigning();
    const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
    await user.click(await screen.findByRole("button", { name: "Assign to me" }));
    await waitFor(() => expect(row()).toHaveTextContent("Assigned to ada@example.com"));
    expect(await field()).toHaveValue("ada@example.com");
    await screen.findByRole("button", { name: "Unassign" });
    await user.keyboard("m");
    await waitFor(() => expect(row()).not.toHaveTextContent("Assigned to"));
    expect(asked).toEqual([
      { assignee: "ada@example.com", was: "" },
      { assignee: "", was: "ada@example.com" },
    ]);
  });

  test("is passed to somebody else", async () => {
    world.alerts = [anAlert(5, { assignee: "cy@example.com", assignedBy: "cy@example.com" })];
    const asked = assigning();
    const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
    await screen.findByRole("option", { name: "bo@example.com" });
    expect(screen.queryByRole("button", { name: /Assign to me|Unassign/ })).toBeNull();
    await user.selectOptions(await field(), "bo@example.com");
    await waitFor(() => expect(row()).toHaveTextContent("Assigned to bo@example.com"));
    expect(asked).toEqual([{ assignee: "bo@example.com", was: "cy@example.com" }]);
  });

  test("that somebody took first stays theirs, and the reader learns whose it is", async () => {
    world.alerts = [anAlert(5)];
    const asked = assigning();
    const { user } = open(`/inbox/${world.alerts[0]?.id}?fold=none`);
    const take = await screen.findByRole("button", { name: "Assign to me" });
    Object.assign(world.alerts[0] as Alert, { assignee: "bo@example.com", assignedBy: "bo@example.com" });
    await user.click(take);
    await screen.findByText(/was not assigned. The alert is assigned to bo@example.com/);
    await waitFor(async () => expect(await field()).toHaveValue("bo@example.com"));
    expect(asked).toHaveLength(1);
  });

  test("that is over is not assigned any more", async () => {
    world.alerts = [anAlert(5, { state: "RESOLVED", assignee: "bo@example.com", assignedBy: "bo@example.com" })];
    open(`/inbox/${world.alerts[0]?.id}?state=resolved&fold=none`);
    await screen.findByText("bo@example.com", { selector: "dd *, dd" });
    expect(screen.queryByRole("combobox", { name: "Assigned to" })).toBeNull();
    expect(screen.queryByRole("button", { name: "Assign to me" })).toBeNull();
  });
});

test("alerts are filtered by who has them", async () => {
  world.alerts = [anAlert(5)];
  const asked: string[][] = [];
  server.events.on("request:start", ({ request }) => {
    const url = new URL(request.url);
    if (url.pathname.endsWith("/alerts")) asked.push(url.searchParams.getAll("assignee"));
  });
  const { user, router } = open("/inbox?fold=none");
  await user.click(await screen.findByRole("button", { name: /More/ }));
  await user.selectOptions(await screen.findByRole("combobox", { name: "Assigned to" }), "Nobody");
  await user.click(screen.getByRole("button", { name: "Apply" }));
  await waitFor(() => expect(router.state.location.search).toMatchObject({ assignee: "none" }));
  await screen.findByRole("link", { name: /Assigned to nobody/ });
  await waitFor(() => expect(asked.at(-1)).toEqual([""]));
  server.events.removeAllListeners();
});
