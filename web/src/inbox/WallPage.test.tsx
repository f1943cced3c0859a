import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { anAlert, open, startWorld } from "../test/world";

const { world } = startWorld();

test("a wall shows what fires, without the rail", async () => {
  world.alerts = [anAlert(5, { route: "import" }), anAlert(60, { route: "import" }), anAlert(90, { route: "export" })];
  open("/wall");
  const lines = await screen.findAllByRole("listitem");
  expect(lines).toHaveLength(2);
  expect(lines[0]).toHaveTextContent(/orders · import.*×2/);
  expect(
    within(lines[0] as HTMLElement)
      .getByRole("link")
      .getAttribute("href"),
  ).toMatch(/^\/issue\?/);
  expect(screen.queryByRole("navigation")).toBeNull();
  expect(screen.getByRole("heading", { level: 1, name: "Firing alerts" })).toBeInTheDocument();
});

test("a calm wall says so", async () => {
  open("/wall");
  expect(await screen.findByText("Nothing is firing")).toBeVisible();
});
