import { screen, waitFor, within } from "@testing-library/react";
import { delay, http } from "msw";
import { describe, expect, test } from "vitest";
import { anAlert, api, open, problem, startWorld } from "../test/world";

const { server, world } = startWorld();
const rows = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link");
const routes = () => rows().map((row) => /orders · ([\w-]+?)(?=\d|ConnectException|now)/.exec(row.textContent)?.[1]);
const never = () => delay("infinite");

/** An issue of one alert in each of three routes. */
async function single(unread = false) {
  world.alerts = ["a-", "b-", "c-"].map((route, at) => anAlert(5 + at, { route, unread }));
  const { user } = open("/inbox");
  await waitFor(() => expect(routes()).toEqual(["a-", "b-", "c-"]));
  return user;
}

describe("in a folded list, before the server answers", () => {
  test("the row of an acknowledged alert leaves, and comes back if that is refused", async () => {
    let refuse = () => {};
    const refused = new Promise<void>((resolve) => {
      refuse = resolve;
    });
    server.use(
      http.post(api("/alerts/acknowledge"), async () => {
        await refused;
        return problem(403, { code: "forbidden" });
      }),
    );
    const user = await single();
    server.use(http.get(api("/alerts/groups"), never));
    await user.keyboard("jja");
    await waitFor(() => expect(routes()).toEqual(["a-", "c-"]));
    refuse();
    await screen.findByText(/^“orders · b-: FAILED” was not acknowledged\./);
    expect(routes()).toEqual(["a-", "b-", "c-"]);
  });

  test("a row is marked as read", async () => {
    server.use(http.post(api("/alerts/read"), never));
    const user = await single(true);
    expect(rows()[0]).toHaveTextContent("Unread.");
    await user.keyboard("ju");
    await waitFor(() => expect(rows()[0]).not.toHaveTextContent("Unread."));
    expect(rows()[1]).toHaveTextContent("Unread.");
  });

  test("an open alert is shown as its row has it", async () => {
    const user = await single();
    server.use(http.get(api(`/alerts/${world.alerts[1]?.id}`), never));
    await user.keyboard("jj{Enter}");
    expect(await screen.findByRole("heading", { name: "orders · b-: FAILED" })).toBeVisible();
  });

  test("an open alert below its group is shown as its row has it", async () => {
    world.alerts = [anAlert(5, { title: "The newer" }), anAlert(6, { title: "The older" })];
    server.use(http.get(api(`/alerts/${world.alerts[1]?.id}`), never));
    const { user } = open("/inbox");
    await user.click(await screen.findByRole("button", { name: /×2/ }));
    await waitFor(() => expect(rows().length).toBeGreaterThan(1));
    await user.keyboard("jj{Enter}");
    expect(await screen.findByRole("heading", { name: "The older" })).toBeVisible();
  });
});
