import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { IssueNote } from "../api/client";
import { anAlert, api, open, problem, signedInAs, startWorld } from "../test/world";

const { server, world } = startWorld();

const count = { observed: 7, threshold: 5, windowSeconds: 600, groupBy: "ROUTE", group: "import" } as const;

const note = (n: number, author: string, text: string): IssueNote => ({
  id: `0192f0c1-0000-7000-8000-0000000008${n}0`,
  author,
  text,
  writtenAt: new Date(Date.now() - n * 60_000).toISOString(),
});

/** Stores notes for each alert. The first attempt to write one fails. */
function notesOfAlerts(stored: Record<string, IssueNote[]>) {
  const sent: unknown[] = [];
  server.use(
    http.get(api("/alerts/:id/notes"), ({ params }) => HttpResponse.json({ items: stored[String(params.id)] ?? [] })),
    http.post(api("/alerts/:id/notes"), async ({ request, params }) => {
      const asked = (await request.json()) as { noteId: string; text: string };
      sent.push(asked);
      if (sent.length === 1) return problem(503, { title: "Service Unavailable", code: "unavailable" });
      const written = { ...note(3, "ada@example.com", asked.text), id: asked.noteId };
      stored[String(params.id)] = [written, ...(stored[String(params.id)] ?? [])];
      return HttpResponse.json(written, { status: 201 });
    }),
    http.delete(api("/alerts/issue/notes/:note"), ({ params }) => {
      for (const [id, notes] of Object.entries(stored)) stored[id] = notes.filter((one) => one.id !== params.note);
      return new HttpResponse(null, { status: 204 });
    }),
  );
  return sent;
}

test("notes on a window alert are written once, kept until they are stored, and deleted by their authors", async () => {
  const alert = anAlert(5, { count });
  world.alerts = [alert];
  const sent = notesOfAlerts({ [alert.id]: [note(1, "bo@example.com", "It peaks every Monday.")] });
  server.use(signedInAs("operator"));
  const { user } = open(`/inbox/${alert.id}?fold=none`);
  const list = await screen.findByRole("list", { name: "Notes" });
  expect(within(list).getByText("It peaks every Monday.")).toBeVisible();
  expect(within(list).queryByRole("button", { name: "Delete note by bo@example.com" })).toBeNull();

  const field = screen.getByRole("textbox", { name: "New note" });
  expect(field).toHaveAccessibleDescription(/this rule fires for this group/);
  // Letters in a note are no keys of the inbox.
  await user.type(field, "are kept");
  expect(alert.state).toBe("FIRING");
  await user.click(screen.getByRole("button", { name: "Add note" }));
  await screen.findByRole("alert");
  expect(field).toHaveValue("are kept");
  await user.click(screen.getByRole("button", { name: "Add note" }));
  expect(await within(list).findByText("are kept")).toBeVisible();
  expect(field).toHaveValue("");
  expect(sent[1]).toEqual(sent[0]);
  expect(sent[0]).toEqual({ text: "are kept", noteId: expect.any(String) });

  await user.click(within(list).getByRole("button", { name: "Delete note by ada@example.com" }));
  await user.click(await screen.findByRole("button", { name: "Delete note" }));
  await waitFor(() => expect(within(list).queryByText("are kept")).toBeNull());
  expect(within(list).getByText("It peaks every Monday.")).toBeVisible();
});

test("a note that is not saved is asked about on the way to another alert, and does not go there", async () => {
  const [first, second] = [anAlert(5, { count, route: "import" }), anAlert(60, { count, route: "export" })];
  world.alerts = [first, second];
  notesOfAlerts({ [first.id]: [note(1, "bo@example.com", "Of the first.")] });
  const { user, router } = open(`/inbox/${first.id}?fold=none`);
  await screen.findByText("Of the first.");
  const field = screen.getByRole("textbox", { name: "New note" });
  await user.type(field, "Half a");
  const other = () => within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("link")[1] as HTMLElement;
  await user.click(other());
  await user.click(await screen.findByRole("button", { name: "Cancel" }));
  expect(field).toHaveValue("Half a");
  expect(router.state.location.pathname).toContain(first.id);
  await user.click(other());
  await user.click(await screen.findByRole("button", { name: "Discard changes" }));
  await waitFor(() => expect(router.state.location.pathname).toContain(second.id));
  await waitFor(() => expect(screen.getByRole("textbox", { name: "New note" })).toHaveValue(""));
  await waitFor(() => expect(screen.queryByText("Of the first.")).toBeNull());
});

test("a note that is not saved survives another filter of the list", async () => {
  const alert = anAlert(5, { count });
  world.alerts = [alert];
  const { user, router } = open(`/inbox/${alert.id}?fold=none`);
  const field = await screen.findByRole("textbox", { name: "New note" });
  await user.type(field, "Half a");
  await router.navigate({ to: "/inbox/$alertId", params: { alertId: alert.id }, search: { state: "resolved" } });
  await waitFor(() => expect(router.state.location.search).toMatchObject({ state: "resolved" }));
  expect(screen.getByRole("textbox", { name: "New note" })).toHaveValue("Half a");
});

test("who may not write notes reads them", async () => {
  const alert = anAlert(5, { count });
  world.alerts = [alert];
  notesOfAlerts({ [alert.id]: [note(1, "bo@example.com", "Ask.")] });
  server.use(signedInAs("viewer"));
  open(`/inbox/${alert.id}?fold=none`);
  expect(await screen.findByText("Ask.")).toBeVisible();
  expect(screen.queryByRole("textbox", { name: "New note" })).toBeNull();
  expect(screen.queryByRole("button", { name: /^Delete note/ })).toBeNull();
});

test("the alert of one exchange links to its issue, and one about Tocsin itself has no notes", async () => {
  const single = anAlert(5, { signature: "java.net.ConnectException" });
  const { exchange: _, ...health } = anAlert(60, { health: true, title: "The rule cannot be evaluated" });
  world.alerts = [single, health as typeof single];
  const { unmount } = open(`/inbox/${single.id}?fold=none`);
  expect(await screen.findByRole("link", { name: "Open issue" })).toBeVisible();
  expect(screen.queryByRole("heading", { name: "Notes" })).toBeNull();
  unmount();
  open(`/inbox/${health.id}?fold=none`);
  expect(await screen.findByRole("heading", { name: "Timeline" })).toBeVisible();
  expect(screen.queryByRole("heading", { name: "Notes" })).toBeNull();
});

test("what is typed while a note is being stored stays, for the next note", async () => {
  const alert = anAlert(5, { count });
  world.alerts = [alert];
  let store = () => {};
  server.use(
    http.post(api("/alerts/:id/notes"), async ({ request }) => {
      const { noteId, text } = (await request.json()) as { noteId: string; text: string };
      await new Promise<void>((resolve) => {
        store = resolve;
      });
      return HttpResponse.json({ ...note(1, "ada@example.com", text), id: noteId }, { status: 201 });
    }),
  );
  const { user } = open(`/inbox/${alert.id}`);
  const field = await screen.findByLabelText("New note");
  await user.type(field, "Restarted.");
  await user.click(screen.getByRole("button", { name: "Add note" }));
  await user.type(field, " It helped.");
  store();
  await waitFor(() => expect(field).toHaveValue("It helped."));
});
