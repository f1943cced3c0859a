import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { api, held, open, problem, startWorld } from "../test/world";

const { server } = startWorld();

/** Stores teams as the server does. */
function teams(first: unknown[] = []) {
  const stored = { version: 1, teams: first };
  server.use(
    http.get(api("/users"), () => HttpResponse.json({ items: [{ id: "u1", email: "ada@example.com" }] })),
    http.get(api("/teams"), () => HttpResponse.json(stored)),
    http.put(api("/teams"), async ({ request }) => {
      if (request.headers.get("If-Match") !== `"${stored.version}"`) {
        return problem(412, { code: "stale", detail: "The teams were changed." });
      }
      const body = (await request.json()) as { teams: unknown[] };
      stored.teams = body.teams;
      stored.version += 1;
      return HttpResponse.json(stored);
    }),
  );
  return stored;
}

test("an administrator makes, edits and deletes a team", async () => {
  const stored = teams();
  const { user } = open("/teams");
  await screen.findByText("No teams yet");
  await user.click(screen.getByRole("button", { name: "New team" }));
  const dialog = await screen.findByRole("dialog", { name: "New team" });
  await user.type(within(dialog).getByLabelText("Name"), "integration");
  await user.type(within(dialog).getByLabelText("Members"), "ada@example.com{Enter}");
  await user.click(within(dialog).getByRole("button", { name: "Create team" }));
  await screen.findByRole("cell", { name: "ada@example.com" });
  expect(stored.teams).toEqual([{ name: "integration", members: ["ada@example.com"], groups: [], webhookIds: [] }]);

  await user.click(screen.getByRole("button", { name: "Edit integration" }));
  const edit = await screen.findByRole("dialog", { name: "Edit integration" });
  await user.type(within(edit).getByLabelText("Groups"), "sre{Enter}");
  await user.click(within(edit).getByRole("button", { name: "Save" }));
  await screen.findByRole("cell", { name: "sre" });

  await user.click(screen.getByRole("button", { name: "Delete integration" }));
  await user.click(await screen.findByRole("button", { name: "Delete team" }));
  await screen.findByText("No teams yet");
  expect(stored.teams).toEqual([]);
});

test("after a team is deleted, the focus is on the next one, the previous one, or what makes one", async () => {
  teams(["a", "b", "c"].map((name) => ({ name })));
  const { user } = open("/teams");
  const remove = async (name: string) => {
    const button = await screen.findByRole("button", { name: `Delete ${name}` });
    await user.click(button);
    const confirm = await screen.findByRole("button", { name: "Delete team" });
    // A browser returns the focus when a dialog closes; the simulated page does not.
    button.focus();
    fireEvent.click(confirm);
  };
  const has = (name: string) => waitFor(() => expect(screen.getByRole("button", { name })).toHaveFocus());
  await remove("b");
  await has("Delete c");
  await remove("c");
  await has("Delete a");
  await remove("a");
  await has("New team");
});

test("a member who is not a user yet is named, in the list and where members are written", async () => {
  teams([{ name: "integration", members: ["ADA@example.com", "eve@example.com"] }]);
  const { user } = open("/teams");
  const row = await screen.findByRole("row", { name: /integration/ });
  expect(await within(row).findByText("Not a user yet: eve@example.com")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Edit integration" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Edit integration" }));
  await user.type(dialog.getByLabelText("Members"), "bo@example.com{Enter}");
  expect(dialog.getByRole("status")).toHaveTextContent(/^Not a user yet: eve@example\.com and bo@example\.com\./);
});

test("a team that is refused has the focus on what is wrong", async () => {
  teams();
  server.use(
    http.put(api("/teams"), () =>
      problem(400, {
        code: "invalid",
        errors: [{ field: "teams[0].name", code: "required", message: "Must not be empty" }],
      }),
    ),
  );
  const { user } = open("/teams");
  await user.click(await screen.findByRole("button", { name: "New team" }));
  const dialog = within(await screen.findByRole("dialog", { name: "New team" }));
  await user.click(dialog.getByRole("button", { name: "Create team" }));
  expect(await dialog.findByText("Must not be empty")).toBeVisible();
  await waitFor(() => expect(dialog.getByRole("textbox", { name: "Name" })).toHaveFocus());
});

test("an edit of what somebody else has changed is refused, and stays to be read", async () => {
  const stored = teams([{ name: "integration" }]);
  const { user } = open("/teams");
  await user.click(await screen.findByRole("button", { name: "Edit integration" }));
  stored.version = 7;
  const dialog = await screen.findByRole("dialog", { name: "Edit integration" });
  await user.click(within(dialog).getByRole("button", { name: "Save" }));
  expect(await within(dialog).findByText(/The teams were changed/)).toBeVisible();
});

/** Makes the reader someone who is not an administrator. */
function reads(role: string) {
  server.use(
    http.get(api("/me"), () =>
      HttpResponse.json({
        kind: "user",
        id: "u1",
        name: "Bo",
        email: "bo@example.com",
        role,
        tenant: "default",
      }),
    ),
  );
}

test("an operator reads who is in which team", async () => {
  teams([{ name: "integration", members: ["ada@example.com"] }]);
  reads("operator");
  open("/teams");
  await screen.findByRole("cell", { name: "ada@example.com" });
  await waitFor(() => expect(screen.queryByRole("button", { name: /New team|Edit|Delete/ })).toBeNull());
});

test("a viewer reads which teams there are, and not who is in them", async () => {
  server.use(
    http.get(api("/teams"), () =>
      HttpResponse.json({ version: 2, membersHidden: true, teams: [{ name: "integration" }] }),
    ),
  );
  reads("viewer");
  open("/teams");
  await screen.findByRole("cell", { name: "integration" });
  expect(screen.getAllByRole("columnheader").map((head) => head.textContent)).toEqual(["Team", "Escalations go to"]);
});

test("a team that somebody has changed while its dialog is open is deleted, and no other", async () => {
  const stored = teams([{ name: "a", members: ["ada@example.com"] }, { name: "b" }]);
  const { user, cache } = open("/teams");
  await user.click(await screen.findByRole("button", { name: "Delete a" }));
  await screen.findByRole("button", { name: "Delete team" });
  stored.teams = [{ name: "a", members: ["ada@example.com", "bo@example.com"] }, { name: "b" }];
  stored.version += 1;
  await cache.refetchQueries({ queryKey: ["teams"] });
  await screen.findByText(/bo@example.com/, { selector: "td" });
  await user.click(screen.getByRole("button", { name: "Delete team" }));
  expect(await screen.findByText("a was deleted.")).toBeVisible();
  expect(stored.teams).toEqual([{ name: "b" }]);
});

test("what the server refuses is said although the dialog was closed meanwhile", async () => {
  teams([{ name: "integration", members: ["ada@example.com"] }]);
  let waiting = held();
  server.use(
    http.put(api("/teams"), async () => {
      await waiting.released;
      return problem(400, {
        detail: "The teams are not valid",
        errors: [{ field: "teams[0].members[0]", message: "Is not an address.", code: "x" }],
      });
    }),
  );
  const { user } = open("/teams");
  await user.click(await screen.findByRole("button", { name: "Edit integration" }));
  const edit = within(await screen.findByRole("dialog", { name: "Edit integration" }));
  await user.click(edit.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(edit.getByLabelText("Name")).toBeDisabled());
  await user.click(edit.getByRole("button", { name: "Cancel" }));
  waiting.release();
  expect(await screen.findByText("Not saved. Teams 1, members 1: Is not an address.")).toBeVisible();

  waiting = held();
  await user.click(screen.getByRole("button", { name: "Delete integration" }));
  const remove = within(await screen.findByRole("dialog", { name: "Delete integration?" }));
  await user.click(remove.getByRole("button", { name: "Delete team" }));
  await user.click(remove.getByRole("button", { name: "Cancel" }));
  waiting.release();
  expect(await screen.findByText("integration was not deleted. Teams 1, members 1: Is not an address.")).toBeVisible();
});

test("what the server refuses is said in the dialog that asked, with the field", async () => {
  teams([{ name: "integration", members: ["ada@example.com"] }]);
  server.use(
    http.put(api("/teams"), () =>
      problem(400, {
        detail: "The teams are not valid",
        errors: [{ field: "teams[0].members[0]", message: "Is not an address", code: "x" }],
      }),
    ),
  );
  const { user } = open("/teams");
  await user.click(await screen.findByRole("button", { name: "Delete integration" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Delete integration?" }));
  await user.click(dialog.getByRole("button", { name: "Delete team" }));
  expect(await dialog.findByRole("alert")).toHaveTextContent("Teams 1, members 1: Is not an address");
});
