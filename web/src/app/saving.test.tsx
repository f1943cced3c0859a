import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { aRule } from "../test/rules";
import { api, open, paste, startWorld } from "../test/world";

const { server } = startWorld();

const webhook = { ...aRule(), kind: "slack", urlHost: "hooks.slack.com", events: [], bodyTemplate: "" };
const health = { state: "ok", consecutiveFailures: 0 };

test.each([
  ["a new silence", "/silences/new", "Create silence"],
  ["a new webhook", "/webhooks/new", "Create webhook"],
  ["a webhook", "/webhooks/w1", "Save webhook"],
  ["a new rule", "/rules/new", "Create rule"],
])("%s that is being saved takes no more text, and leads nobody back who has left", async (_, address, action) => {
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const saved = async () => {
    await answered;
    return HttpResponse.json({ ...webhook, name: "Nights" });
  };
  server.use(
    http.post(api("/silences"), saved),
    http.post(api("/webhooks"), saved),
    http.put(api("/webhooks/:id"), saved),
    http.post(api("/rules"), saved),
    http.get(api("/webhooks/:id"), () => HttpResponse.json({ ...webhook, health, name: "Night" })),
  );
  const { user, router } = open(address);
  const name = await screen.findByRole("textbox", { name: "Name" });
  await paste(user, name, "s");
  await user.click(screen.getByRole("button", { name: action }));
  await waitFor(() => expect(name).toBeDisabled());

  void router.navigate({ to: "/account" });
  const dialog = within(await screen.findByRole("dialog", { name: "Leave without saving?" }));
  await user.click(dialog.getByRole("button", { name: "Discard changes" }));
  await screen.findByRole("heading", { name: "Account" });
  answer();
  await screen.findByText(/^“Nights” was (saved|created)\./);
  // What follows the message, too.
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(router.state.location.pathname).toBe("/account");
});
