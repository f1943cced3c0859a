import { screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { api, open, problem, startWorld } from "../../test/world";
import * as pages from "../pages";

const { server } = startWorld();

const state = vi.hoisted(() => ({ comes: false }));
vi.mock("../../system/SystemPage", () => ({
  get SystemPage() {
    if (!state.comes) throw new TypeError("Failed to fetch dynamically imported module");
    return () => <h1>The system</h1>;
  },
}));

test("what could not be loaded is reported within the frame, other pages work, and it comes when Tocsin answers", async () => {
  const first = http.get(`${globalThis.location.origin}/`, () => HttpResponse.error());
  server.use(
    first,
    http.get(api("/status"), () => HttpResponse.error()),
  );
  const { user } = open("/inbox");
  await user.click(await screen.findByRole("link", { name: "System" }));
  expect(await screen.findByRole("alert")).toHaveTextContent(
    "Tocsin cannot be reached.Check your connection, and whether Tocsin is running.",
  );
  expect(screen.getByRole("heading", { level: 1 })).toHaveTextContent("System");
  expect(document.title).toBe("System · Tocsin");
  expect(screen.getByRole("region", { name: "Tocsin status" })).toHaveTextContent("Offline");

  await user.click(screen.getByRole("link", { name: "Rules" }));
  await screen.findByRole("heading", { name: "Rules", level: 1 });
  await user.click(screen.getByRole("link", { name: "System" }));
  await screen.findByRole("alert");

  state.comes = true;
  server.use(http.get(api("/status"), () => problem(503, { code: "unavailable" })));
  await screen.findByRole("heading", { name: "The system" });
  await waitFor(() => expect(pages.system.chunk.current().failure).toBeUndefined());
});
