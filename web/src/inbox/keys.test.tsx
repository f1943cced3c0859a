import { screen, waitFor, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { anAlert, open, startWorld } from "../test/world";

const { world } = startWorld();

const rows = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link");

test("keys act on the alert that is shown alone, and on no selection that nobody sees", async () => {
  const wide = window.matchMedia.bind(window);
  vi.spyOn(window, "matchMedia").mockImplementation((query) => {
    const answer = wide(query);
    if (query === "(min-width: 1024px)") Object.defineProperty(answer, "matches", { value: false });
    return answer;
  });
  const [shown, one, other] = [anAlert(5, { route: "a" }), anAlert(6, { route: "b" }), anAlert(7, { route: "c" })];
  world.alerts = [shown, one, other];
  const { user } = open("/inbox?fold=none");
  await waitFor(() => expect(rows()).toHaveLength(3));
  for (const box of screen.getAllByRole("checkbox", { name: /^Select orders · [bc]:/ })) await user.click(box);
  expect(screen.getByText("2 selected")).toBeVisible();
  await user.click(rows()[0] as HTMLElement);
  await screen.findByRole("heading", { name: "orders · a: FAILED" });
  await user.keyboard("xa");
  await waitFor(() => expect(shown.state).toBe("ACKNOWLEDGED"));
  expect([one.state, other.state]).toEqual(["FIRING", "FIRING"]);
  // Escape leads back, to the selection as it was.
  await user.keyboard("{Escape}");
  expect(await screen.findByText("2 selected")).toBeVisible();
});
