import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { anAlert, api, open, paste, problem, startWorld } from "../test/world";
import { timeZone } from "../ui/time";

const { server, world } = startWorld();

const silence = {
  id: "0192f0c1-0000-7000-8000-0000000000a1",
  version: 2,
  name: "ERP maintenance",
  reason: "ERP is upgraded",
  match: { scope: { applications: ["orders"] } },
  startsAt: "2026-11-23T10:00:00Z",
  endsAt: "2099-11-23T12:00:00Z",
  state: "ACTIVE",
  from: "2026-11-23T10:00:00Z",
  until: "2099-11-23T12:00:00Z",
  digest: false,
  suppressed: 12,
  digests: 0,
  createdAt: "2026-11-23T10:00:00Z",
  createdBy: "ada@example.com",
  updatedAt: "2026-11-23T10:00:00Z",
  updatedBy: "ada@example.com",
};

const preview = {
  alerts: 40,
  messages: 80,
  matchedAlerts: 7,
  matchedMessages: 14,
  suppressedAlerts: 7,
  suppressedMessages: 14,
  complete: true,
  newest: [],
  windows: [],
};

function answersPreview() {
  const asked: unknown[] = [];
  server.use(
    http.post(api("/silences/preview"), async ({ request }) => {
      asked.push(await request.json());
      return HttpResponse.json(preview);
    }),
    http.get(api("/exchanges/facets"), () => HttpResponse.json({ items: [] })),
  );
  return asked;
}

test("a silence is listed with what it is about, and ended", async () => {
  let ended = false;
  server.use(
    http.get(api("/silences"), ({ request }) => {
      const past = new URL(request.url).searchParams.get("past") === "true";
      return HttpResponse.json({ items: past === ended ? [{ ...silence, ...(ended ? { state: "PAST" } : {}) }] : [] });
    }),
    http.post(api("/silences/:id/end"), () => {
      ended = true;
      return HttpResponse.json({ ...silence, state: "PAST" });
    }),
  );
  const { user } = open("/silences");
  const row = within(await screen.findByRole("row", { name: /ERP maintenance/ }));
  expect(row.getByText("application orders")).toBeVisible();
  expect(row.getByText("Active")).toBeVisible();
  expect(row.getByRole("link", { name: "12 messages" })).toHaveAttribute("href", `/deliveries?silence=${silence.id}`);
  await user.click(row.getByRole("button", { name: "End ERP maintenance" }));
  await user.click(screen.getByRole("button", { name: "End silence" }));
  expect(await screen.findByText("Nothing is silenced")).toBeVisible();
  await user.click(screen.getByRole("link", { name: "Past" }));
  expect(await screen.findByRole("row", { name: /ERP maintenance/ })).toBeVisible();
  const tabs = within(screen.getByRole("navigation", { name: "Which silences" })).getAllByRole("link");
  expect(tabs.map((tab) => tab.getAttribute("aria-current"))).toEqual([null, "page"]);
});

test("a digest is asked for, and the list says what came of it", async () => {
  answersPreview();
  let sent: Record<string, unknown> = {};
  const due = { ...silence, id: "0192f0c1-0000-7000-8000-0000000000a2", name: "Deploy", digest: true };
  const done = { ...silence, digest: true, digests: 2 };
  const nothing = { ...due, id: "0192f0c1-0000-7000-8000-0000000000a3", name: "Quiet night", state: "PAST" };
  server.use(
    http.get(api("/silences"), () => HttpResponse.json({ items: [done, due, nothing] })),
    http.post(api("/silences"), async ({ request }) => {
      sent = (await request.json()) as Record<string, unknown>;
      return HttpResponse.json(due, { status: 201 });
    }),
  );
  const { user } = open("/silences/new");
  await paste(user, await screen.findByRole("textbox", { name: "Name" }), "Deploy");
  const box = screen.getByRole("checkbox", { name: "Send a digest at the end" });
  expect(box).not.toBeChecked();
  await user.click(box);
  await user.click(screen.getByRole("button", { name: "Create silence" }));
  const row = within(await screen.findByRole("row", { name: /ERP maintenance/ }));
  expect(sent).toMatchObject({ name: "Deploy", digest: true });
  expect(row.getByRole("link", { name: "2 digests" })).toHaveAttribute("href", `/deliveries?digestsOf=${silence.id}`);
  const waiting = within(screen.getByRole("row", { name: /Deploy/ }));
  expect(waiting.getByText("digest at the end")).toBeVisible();
  expect(within(screen.getByRole("row", { name: /Quiet night/ })).getByText("no digest")).toBeVisible();
  await user.click(waiting.getByRole("button", { name: "End Deploy" }));
  expect(await screen.findByText(/Each webhook gets a digest that lists them/)).toBeVisible();
});

test("a silence that recurs says that no window is left, and can still be extended", async () => {
  answersPreview();
  const recurrence = { timeZone: "UTC", weekdays: ["MON"], from: "22:00", durationMinutes: 60 };
  const { from: _, until: __, ...rest } = silence;
  const between = { ...rest, state: "PAST", recurrence };
  const over = { ...between, id: "0192f0c1-0000-7000-8000-0000000000a4", name: "Move", endsAt: "2026-11-23T11:00:00Z" };
  server.use(
    http.get(api("/silences"), () => HttpResponse.json({ items: [between, over] })),
    http.get(api("/silences/:id"), () => HttpResponse.json(between)),
  );
  const { user } = open("/silences");
  const row = await screen.findByRole("row", { name: /ERP maintenance/ });
  expect(row).toHaveTextContent(/No further windowbefore its end on 23 Nov 2099/);
  expect(screen.getByRole("row", { name: /Move/ })).toHaveTextContent(/Pastended on 23 Nov 2026/);
  await user.click(within(row).getByRole("link", { name: "ERP maintenance" }));
  expect(await screen.findByRole("button", { name: "Save silence" })).toBeVisible();
  expect(screen.queryByText(/can no longer be changed/)).toBeNull();
});

test("a silence without conditions is refused beside the severities", async () => {
  answersPreview();
  server.use(
    http.post(api("/silences"), () =>
      problem(400, {
        code: "invalid",
        detail: "the silence is not valid",
        errors: [{ field: "match", code: "required", message: "Must have at least one condition" }],
      }),
    ),
  );
  const { user } = open("/silences/new");
  await user.type(await screen.findByRole("textbox", { name: "Name" }), "All");
  await user.click(screen.getByRole("button", { name: "Create silence" }));
  expect(await screen.findByText("Must have at least one condition")).toBeVisible();
  expect(screen.getByRole("group", { name: "Severities" })).toHaveAccessibleDescription(/at least one condition/);
  expect(screen.getByRole("checkbox", { name: "Critical" })).toHaveFocus();
});

test("viewers cannot make or end silences", async () => {
  server.use(
    http.get(api("/me"), () =>
      HttpResponse.json({
        kind: "user",
        id: "u",
        name: "V",
        email: "v@example.com",
        role: "viewer",
        tenant: "default",
      }),
    ),
    http.get(api("/silences"), () => HttpResponse.json({ items: [silence] })),
  );
  open("/silences");
  await screen.findByRole("row", { name: /ERP maintenance/ });
  expect(screen.queryByRole("link", { name: "New silence" })).toBeNull();
  expect(screen.queryByRole("button", { name: /End/ })).toBeNull();
});

test("an alert leads to a silence that is filled in, previewed and made", async () => {
  const asked = answersPreview();
  let sent: Record<string, unknown> = {};
  const alert = anAlert(5);
  world.alerts = [alert];
  server.use(
    http.get(api("/rules"), () => HttpResponse.json({ items: [] })),
    http.get(api("/silences"), () => HttpResponse.json({ items: [silence] })),
    http.post(api("/silences"), async ({ request }) => {
      sent = (await request.json()) as Record<string, unknown>;
      return HttpResponse.json({ ...silence, name: "Failed orders" }, { status: 201 });
    }),
  );
  const { user, router } = open(`/inbox/${alert.id}`);
  await user.click(await screen.findByRole("link", { name: "Silence" }));
  expect(await screen.findByDisplayValue("Failed orders")).toBeVisible();
  expect(await screen.findByText("14 messages about 7 alerts")).toBeVisible();
  expect(screen.getByText(/Only messages about new alerts are counted, not reminders/)).toBeVisible();
  expect(asked[0]).toMatchObject({
    match: { rules: [alert.ruleId], scope: { applications: ["orders"], routes: ["order-to-erp"] } },
  });
  await paste(user, screen.getByRole("textbox", { name: "Rule labels" }), "nonsense");
  await user.click(screen.getByRole("button", { name: "Create silence" }));
  expect(await screen.findByText(/Cannot be read: nonsense/)).toBeVisible();
  await user.clear(screen.getByRole("textbox", { name: "Rule labels" }));
  await user.click(screen.getByRole("button", { name: "Create silence" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/silences"));
  expect(sent).toMatchObject({ name: "Failed orders", match: { rules: [alert.ruleId] } });
  expect(sent.endsAt).toBeDefined();
});

test("a new silence begins again for another address, and asks before it discards what was typed", async () => {
  answersPreview();
  const alert = anAlert(5);
  world.alerts = [alert];
  const { user, router } = open(`/silences/new?alert=${alert.id}`);
  expect(await screen.findByDisplayValue("Failed orders")).toBeVisible();
  await screen.findByText("deleted rule");
  await router.navigate({ to: "/silences/new" });
  await waitFor(() => expect(screen.getByRole("textbox", { name: "Name" })).toHaveValue(""));
  await paste(user, screen.getByRole("textbox", { name: "Name" }), "Nights");
  void router.navigate({ to: "/silences/new", search: { alert: alert.id } });
  await user.click(await screen.findByRole("button", { name: "Discard changes" }));
  expect(await screen.findByDisplayValue("Failed orders")).toBeVisible();
});

test("a recurring silence is made, and what the server refuses is beside its field", async () => {
  answersPreview();
  let sent: Record<string, unknown> = {};
  server.use(
    http.post(api("/silences"), async ({ request }) => {
      sent = (await request.json()) as Record<string, unknown>;
      return problem(400, {
        code: "invalid",
        detail: "the silence is not valid",
        errors: [{ field: "recurrence.timeZone", code: "unknown_value", message: "Must be a time zone" }],
      });
    }),
  );
  const { user } = open("/silences/new");
  await paste(user, await screen.findByRole("textbox", { name: "Name" }), "Nights");
  await user.click(screen.getByRole("checkbox", { name: "Critical" }));
  await user.click(screen.getByRole("radio", { name: "Every week" }));
  await user.click(screen.getByRole("checkbox", { name: "Mon" }));
  await user.click(screen.getByRole("button", { name: "Create silence" }));
  expect(await screen.findByText("Must be a time zone")).toBeVisible();
  expect(sent).toMatchObject({
    name: "Nights",
    match: { severities: ["CRITICAL"] },
    recurrence: { weekdays: ["MON"], from: "22:00", durationMinutes: 480 },
  });
  expect(sent.endsAt).toBeUndefined();
});

test("what somebody writes stays when somebody else saves, and both are compared", async () => {
  answersPreview();
  let stored = silence;
  const sent: { version: string | null; name: string; reason: string; endsAt: string }[] = [];
  server.use(
    http.get(api("/silences"), () => HttpResponse.json({ items: [stored] })),
    http.get(api("/silences/:id"), () => HttpResponse.json(stored)),
    http.put(api("/silences/:id"), async ({ request }) => {
      const version = request.headers.get("If-Match");
      sent.push({ version, ...((await request.json()) as { name: string; reason: string; endsAt: string }) });
      if (version !== `"${stored.version}"`) return problem(412, { code: "precondition_failed" });
      return HttpResponse.json(stored);
    }),
  );
  const { user, cache, router } = open(`/silences/${silence.id}`);
  const name = await screen.findByRole("textbox", { name: "Name" });
  await paste(user, name, " of Monday");
  stored = { ...silence, version: 3, reason: "A longer upgrade", endsAt: "2099-11-23T15:00:07Z" };
  await cache.refetchQueries({ queryKey: ["silences", "one", silence.id] });
  expect(name).toHaveValue("ERP maintenance of Monday");

  await user.click(screen.getByRole("button", { name: "Save silence" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Someone else has changed this silence" }));
  expect(dialog.getAllByRole("group").map((group) => group.querySelector("legend")?.textContent)).toEqual([
    "Name",
    "Reason",
    "Schedule",
  ]);
  await user.click(dialog.getByRole("button", { name: "Use these versions" }));
  expect(screen.getByRole("textbox", { name: "Reason" })).toHaveValue("A longer upgrade");
  await user.click(screen.getByRole("button", { name: "Save silence" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/silences"));
  expect(sent.map(({ version }) => version)).toEqual(['"2"', '"3"']);
  // Exact to the second, although the field shows minutes.
  expect(sent[1]).toMatchObject({
    name: "ERP maintenance of Monday",
    reason: "A longer upgrade",
    endsAt: "2099-11-23T15:00:07Z",
  });
});

test("who has written nothing sees what is stored now", async () => {
  answersPreview();
  let stored = silence;
  server.use(http.get(api("/silences/:id"), () => HttpResponse.json(stored)));
  const { cache } = open(`/silences/${silence.id}`);
  const reason = await screen.findByRole("textbox", { name: "Reason" });
  stored = { ...silence, version: 3, reason: "A longer upgrade" };
  await cache.refetchQueries({ queryKey: ["silences", "one", silence.id] });
  await waitFor(() => expect(reason).toHaveValue("A longer upgrade"));
});

test("who leaves with changes is asked, and times are typed in the zone in which they are said", async () => {
  answersPreview();
  timeZone.set("utc");
  server.use(
    http.get(api("/silences"), () => HttpResponse.json({ items: [] })),
    http.get(api("/silences/:id"), () => HttpResponse.json({ ...silence, state: "UPCOMING" })),
  );
  try {
    const { user, router } = open(`/silences/${silence.id}`);
    const ends = await screen.findByLabelText("Ends");
    expect(ends).toHaveValue("2099-11-23T12:00");
    expect(ends).toHaveAccessibleDescription("Time zone: UTC.");
    await paste(user, screen.getByRole("textbox", { name: "Reason" }), ", twice");
    await user.click(screen.getByRole("link", { name: "Cancel" }));
    const dialog = within(await screen.findByRole("dialog", { name: "Leave without saving?" }));
    await user.click(dialog.getByRole("button", { name: "Cancel" }));
    expect(router.state.location.pathname).toBe(`/silences/${silence.id}`);
    await user.click(screen.getByRole("link", { name: "Cancel" }));
    await user.click(await screen.findByRole("button", { name: "Discard changes" }));
    expect(await screen.findByRole("link", { name: "Create silence" })).toBeVisible();
  } finally {
    timeZone.set("local");
  }
});

test("the timeline of an alert names the silence", async () => {
  const alert = anAlert(5);
  world.alerts = [alert];
  server.use(
    http.get(api("/alerts/:id/notifications"), () =>
      HttpResponse.json({
        items: [
          {
            id: "n1",
            alertId: alert.id,
            webhookId: "w1",
            webhookName: "#ops",
            reason: "FIRED",
            status: "SUPPRESSED",
            attemptCount: 0,
            attempts: [],
            createdAt: alert.firedAt,
            settledAt: alert.firedAt,
            suppressedBy: {
              id: silence.id,
              name: silence.name,
              reason: silence.reason,
              createdBy: silence.createdBy,
              endsAt: silence.endsAt,
            },
          },
        ],
      }),
    ),
  );
  open(`/inbox/${alert.id}`);
  expect(await screen.findByRole("link", { name: "ERP maintenance" })).toHaveAttribute(
    "href",
    `/silences/${silence.id}`,
  );
  expect(screen.getByText(/by ada@example.com, until 23 Nov 2099/)).toBeVisible();
});
