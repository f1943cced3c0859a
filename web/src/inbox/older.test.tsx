import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { anAlert, api, open, problem, startWorld } from "../test/world";

const { server, world } = startWorld();

test("older alerts that cannot be loaded are not requested without end, and again when somebody asks", async () => {
  const [newer, older] = [anAlert(5, { route: "newer." }), anAlert(60, { route: "older." })];
  world.alerts = [newer, older];
  let asked = 0;
  let refuses = true;
  server.use(
    http.get(api("/alerts"), ({ request }) => {
      if (!new URL(request.url).searchParams.has("cursor")) {
        return HttpResponse.json({ items: [newer], asOf: newer.firedAt, nextCursor: "older" });
      }
      asked += 1;
      return refuses
        ? problem(400, { detail: "The cursor is invalid" })
        : HttpResponse.json({ items: [older], asOf: newer.firedAt });
    }),
  );
  const { user } = open("/inbox?fold=none");
  await screen.findByText("newer.", { exact: false });
  await waitFor(() => expect(asked).toBe(1));
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(asked).toBe(1);
  expect(screen.getByRole("alert")).toHaveTextContent("Older alerts could not be loaded. The cursor is invalid");
  refuses = false;
  await user.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByText("older.", { exact: false })).toBeVisible();
  expect(screen.queryByRole("alert")).toBeNull();
});
