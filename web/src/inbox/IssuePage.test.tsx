import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import type { AlertSelection, IssueNote } from "../api/client";
import { aRule } from "../test/rules";
import { ago, anAlert, anIssue, api, open, problem, signedInAs, startWorld } from "../test/world";

const { server, world } = startWorld();

test("an issue tells its alerts together, and acting on it reaches no other alert", async () => {
  world.alerts = [anAlert(5, { route: "import" }), anAlert(60, { route: "export" })];
  const asked: URLSearchParams[] = [];
  const issue = anIssue();
  const acted: AlertSelection[] = [];
  const assigned: AlertSelection[] = [];
  server.use(
    http.get(api("/alerts/issue"), ({ request }) => {
      asked.push(new URL(request.url).searchParams);
      return HttpResponse.json(issue);
    }),
    http.post(api("/alerts/acknowledge"), async ({ request }) => {
      const selection = (await request.json()) as AlertSelection;
      acted.push(selection);
      const rest = { already: 0, refused: 0, unknown: 0, undoableUntil: ago(-600) };
      return HttpResponse.json({ actionId: selection.actionId, changed: 9, ...rest });
    }),
    http.post(api("/alerts/assign"), async ({ request }) => {
      const selection = (await request.json()) as AlertSelection;
      assigned.push(selection);
      const rest = { already: 0, refused: 0, unknown: 0, undoableUntil: ago(-600) };
      return HttpResponse.json({ actionId: selection.actionId, changed: 10, ...rest });
    }),
  );
  const rule = {
    ...aRule(),
    note: "Ask the ERP team.",
    owner: "Integration",
    runbookUrl: "https://runbooks.example/erp",
  };
  server.use(http.get(api("/rules/:id"), () => HttpResponse.json(rule)));
  const { user } = open("/issue?app=orders&route=import&error=java.net.ConnectException");
  await screen.findByRole("heading", { name: /^java\.net\.ConnectException/ });
  expect(Object.fromEntries(asked[0] ?? [])).toEqual({
    application: "orders",
    route: "import",
    signature: "java.net.ConnectException",
  });
  expect(screen.getByText("9 firing, 1 acknowledged, 2 resolved")).toBeVisible();
  expect(screen.getByRole("img", { name: /^Alerts per hour.*peak 4, latest 3/ })).toBeInTheDocument();
  expect(screen.getByRole("link", { name: "by Bo" })).toHaveAttribute("href", expect.stringContaining("901"));
  expect(await screen.findByText("Ask the ERP team.")).toBeVisible();
  expect(screen.getByRole("link", { name: /^Open runbook/ })).toHaveAttribute("href", rule.runbookUrl);
  const places = within(screen.getByRole("region", { name: "Affected applications" }));
  expect(places.getAllByRole("link").map((link) => link.textContent)).toEqual(["billing · import"]);
  expect(within(screen.getByRole("region", { name: "Regressions" })).getByRole("link")).toHaveTextContent("Seen again");
  await waitFor(() => expect(screen.getAllByRole("row")).toHaveLength(1 + 1));

  await user.click(screen.getByRole("button", { name: "Acknowledge 9 alerts" }));
  await screen.findByText("9 alerts acknowledged.");
  expect(acted).toMatchObject([
    {
      filter: {
        application: ["orders"],
        route: ["import"],
        signature: ["java.net.ConnectException"],
        state: ["FIRING"],
        perExchange: true,
      },
      upTo: issue.newestAt,
    },
  ]);

  await user.click(screen.getByRole("button", { name: "Assign to me" }));
  await screen.findByText("10 alerts assigned to ada@example.com.");
  expect(assigned).toMatchObject([
    {
      filter: { application: ["orders"], route: ["import"], state: ["FIRING", "ACKNOWLEDGED"], perExchange: true },
      upTo: issue.newestAt,
      assignee: "ada@example.com",
      reassign: false,
    },
  ]);
});

test("what was never resolved, and has no error, says so", async () => {
  const { lastResolution: _, ...issue } = anIssue({ signature: "", regressions: [], regressionCount: 0, places: [] });
  server.use(
    http.get(api("/alerts/issue"), () => HttpResponse.json(issue)),
    http.get(api("/rules/:id"), () => problem(404, { title: "Not found", code: "not_found" })),
  );
  open("/issue?app=orders&route=import&error=none");
  expect(await screen.findByRole("heading", { name: "Alerts without an error" })).toBeVisible();
  expect(screen.getByText("Never resolved")).toBeVisible();
  expect(screen.queryByRole("region", { name: "Affected applications" })).toBeNull();
  expect(await within(screen.getByRole("region", { name: "Alerts" })).findByText("No alerts")).toBeVisible();
});

test("an issue that is gone says so, and so does an address that names none", async () => {
  server.use(http.get(api("/alerts/issue"), () => problem(404, { title: "Not found", code: "not_found" })));
  const { unmount } = open("/issue?app=orders&route=import&error=x");
  expect(await screen.findByRole("alert")).toBeVisible();
  unmount();
  open("/issue?app=orders");
  expect(await screen.findByText("This URL does not identify an issue")).toBeVisible();
});

test("notes are written, kept until they are stored, and deleted by their authors", async () => {
  const note = (n: number, author: string, text: string): IssueNote => ({
    id: `0192f0c1-0000-7000-8000-0000000008${n}0`,
    author,
    text,
    writtenAt: ago(n * 60),
  });
  let notes = [note(1, "bo@example.com", "Ask the ERP team."), note(2, "ada@example.com", "It is the firewall.")];
  const sent: { noteId: string; text: string }[] = [];
  server.use(
    http.get(api("/alerts/issue"), () => HttpResponse.json(anIssue())),
    signedInAs("operator"),
    http.get(api("/alerts/issue/notes"), () => HttpResponse.json({ items: notes })),
    http.post(api("/alerts/issue/notes"), async ({ request }) => {
      const asked = (await request.json()) as { noteId: string; text: string };
      sent.push(asked);
      if (sent.length === 1) return problem(503, { title: "Service Unavailable", code: "unavailable" });
      notes = [{ ...note(3, "ada@example.com", asked.text), id: asked.noteId }, ...notes];
      return HttpResponse.json(notes[0], { status: 201 });
    }),
    http.delete(api("/alerts/issue/notes/:id"), ({ params }) => {
      notes = notes.filter(({ id }) => id !== params.id);
      return new HttpResponse(null, { status: 204 });
    }),
  );
  const { user } = open("/issue?app=orders&route=import&error=java.net.ConnectException");
  const list = await screen.findByRole("list", { name: "Notes" });
  expect(within(list).getByText("It is the firewall.")).toBeVisible();
  expect(within(list).queryByRole("button", { name: "Delete note by bo@example.com" })).toBeNull();

  const field = screen.getByRole("textbox", { name: "New note" });
  await user.type(field, "Fixed by a restart.");
  await user.click(screen.getByRole("button", { name: "Add note" }));
  await screen.findByRole("alert");
  expect(field).toHaveValue("Fixed by a restart.");
  await user.click(screen.getByRole("button", { name: "Add note" }));
  expect(await within(list).findByText("Fixed by a restart.")).toBeVisible();
  expect(field).toHaveValue("");
  expect(sent[1]).toEqual(sent[0]);
  expect(sent[0]).toMatchObject({ application: "orders", route: "import", text: "Fixed by a restart." });

  const [newest] = within(list).getAllByRole("button", { name: "Delete note by ada@example.com" });
  await user.click(newest as HTMLElement);
  await user.click(await screen.findByRole("button", { name: "Delete note" }));
  await waitFor(() => expect(within(list).queryByText("Fixed by a restart.")).toBeNull());
  expect(within(list).getByText("It is the firewall.")).toBeVisible();
});

test("a note that is not saved is asked about on the way to another issue", async () => {
  server.use(
    http.get(api("/alerts/issue"), () => HttpResponse.json(anIssue())),
    http.get(api("/rules/:id"), () => problem(404, { title: "Not found", code: "not_found" })),
  );
  const { user, router } = open("/issue?app=orders&route=import&error=java.net.ConnectException");
  const field = await screen.findByRole("textbox", { name: "New note" });
  await user.type(field, "Half a");
  await user.click(screen.getByRole("link", { name: "billing · import" }));
  await user.click(await screen.findByRole("button", { name: "Cancel" }));
  expect(field).toHaveValue("Half a");
  expect(router.state.location.search).toMatchObject({ app: "orders" });
  await user.click(screen.getByRole("link", { name: "billing · import" }));
  await user.click(await screen.findByRole("button", { name: "Discard changes" }));
  await waitFor(() => expect(router.state.location.search).toMatchObject({ app: "billing" }));
  expect(await screen.findByRole("textbox", { name: "New note" })).toHaveValue("");
});

test("who may not write notes reads them", async () => {
  server.use(
    http.get(api("/alerts/issue"), () => HttpResponse.json(anIssue())),
    http.get(api("/me"), () => HttpResponse.json({ kind: "token", name: "wall", role: "viewer", tenant: "default" })),
    http.get(api("/alerts/issue/notes"), () =>
      HttpResponse.json({
        items: [{ id: "0192f0c1-0000-7000-8000-000000000810", author: "bo", text: "Ask.", writtenAt: ago(9) }],
      }),
    ),
  );
  open("/issue?app=orders&route=import&error=java.net.ConnectException");
  expect(await screen.findByText("Ask.")).toBeVisible();
  expect(screen.queryByRole("textbox", { name: "New note" })).toBeNull();
  expect(screen.queryByRole("button", { name: /^Delete note/ })).toBeNull();
});
