// Who is notified, and when: routes, teams, silences, quiet hours and the handling of an alert, written as a new user would
// in a real browser against the real binary, and read again when the page is loaded again, in the API, and by what then
// becomes of an alert.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { accessibility, tooWide, visible } from "./look.mjs";
import { createStage } from "./stage.mjs";

const self = "ada@example.com";

describe("who is notified", { timeout: 600_000 }, () => {
  let stage;

  before(async () => {
    stage = await createStage();
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  const button = (page, name) => page.getByRole("button", { name, exact: true });
  /** The field of a list in which several values can be written or chosen. */
  const list = (page, label) => page.locator("input").and(page.getByLabel(label, { exact: true }));
  const said = (page, text) => page.getByText(text).first().waitFor(visible);
  /** Asks again until there is an answer. */
  const until = async (what, ask) => {
    for (const end = Date.now() + 30_000; Date.now() < end; await new Promise((done) => setTimeout(done, 100))) {
      const found = await ask();
      if (found) return found;
    }
    throw new Error(`not there: ${what}`);
  };
  /** The message about an alert once it is written, for the only webhook that gets one. */
  const messageOf = (alert) =>
    until("the message", async () => (await stage.call("GET", `/notifications?alertId=${alert.id}`)).items[0]);
  const named = async (path, name) => {
    const { items } = await stage.call("GET", `${path}?limit=200`);
    return items.find((one) => one.name === name);
  };

  test("a route with an escalation is written, tested and saved, and takes the alerts that it is about", async () => {
    const { application } = await stage.rule({ webhookIds: [], useRoutingPolicy: true });
    const [team, pager] = [await stage.webhook(), await stage.webhook()];
    const name = `Team of ${application}`;
    const page = await stage.open("/routing");
    // By keyboard alone, as far as a person would go with it.
    await button(page, "Add route").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.type(name);
    await list(page, "Applications").focus();
    await page.keyboard.type(application);
    await page.keyboard.press("Enter");
    await page.getByRole("checkbox", { name: team.name, exact: true }).focus();
    await page.keyboard.press("Space");
    await button(page, "Add step").click();
    const step = page.getByRole("group", { name: "Step 1" });
    await step.getByLabel("After", { exact: true }).fill("90");
    await list(step, "Notify").click();
    await page.getByRole("option", { name: pager.name, exact: true }).click();
    await page.keyboard.press("Escape");
    await page.getByRole("option").first().waitFor({ state: "hidden" });
    assert.deepEqual(await accessibility(page), []);
    await button(page, "Add route").focus();
    await page.keyboard.press("Enter");

    const route = page.getByRole("region", { name, exact: true });
    const tester = page.getByRole("complementary", { name: "Test" });
    const answers = async () => {
      await tester.getByLabel("Application", { exact: true }).fill(application);
      await tester.getByText(`${name}: taken`).waitFor(visible);
      await tester.getByText(team.name, { exact: true }).waitFor(visible);
      await tester.getByText(`not acknowledged after 1 h 30 min → ${pager.name}`).waitFor(visible);
    };
    await answers();
    await tester.getByText("This uses your unsaved changes.").waitFor(visible);
    await button(page, "Save policy").focus();
    await page.keyboard.press("Enter");
    await said(page, "The routing policy was saved.");
    await page.reload();
    await route.getByText(`application ${application}`).waitFor(visible);
    await route.getByText(`→ ${team.name}`, { exact: true }).waitFor(visible);
    await route.getByText(`not acknowledged after 1 h 30 min → ${pager.name}`).waitFor(visible);
    await answers();
    assert.equal(await tester.getByText("This uses your unsaved changes.").count(), 0);

    const { routes } = await stage.call("GET", "/routing");
    const { match, webhookIds, escalation } = routes.find((one) => one.name === name);
    assert.deepEqual(match, { scope: { applications: [application] } });
    assert.deepEqual(webhookIds, [team.id]);
    assert.deepEqual(escalation, [{ afterMinutes: 90, webhookIds: [pager.id] }]);

    const [alert] = await stage.fail(application, ["import"]);
    assert.equal((await messageOf(alert)).webhookId, team.id);
    await until("the message at its receiver", () => stage.receivedOf(application)[0]);
    await page.goto(`${stage.world.url}/inbox/${alert.id}`);
    await said(page, `Routed by “${name}”`);
    await said(page, "Escalation: 1 h 30 min after an alert fires");
  });

  test("what is removed passes the focus to the next, the previous, or what adds one", async () => {
    const { version, teams } = await stage.call("GET", "/teams");
    const names = ["One", "Two"].map((word) => stage.name(word));
    const members = ["ada@example.com", "bo@example.com"];
    await stage.call(
      "PUT",
      "/teams",
      { teams: [...teams, ...names.map((name) => ({ name, members }))] },
      { "If-Match": `"${version}"` },
    );
    const page = await stage.open("/teams");
    const focusOn = (name) =>
      page.waitForFunction((wanted) => document.activeElement?.ariaLabel === wanted, name, visible);
    await button(page, `Edit ${names[0]}`).click();
    const field = list(page, "Members");
    await field.focus();
    await page.keyboard.press("Backspace");
    await page.locator(".mantine-Pill-root").getByText(members[1]).waitFor({ state: "detached" });
    assert.ok(await field.evaluate((element) => element === document.activeElement), "the field keeps the focus");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await button(page, `Delete ${names[1]}`).focus();
    await page.keyboard.press("Enter");
    await button(page, "Delete team").focus();
    await page.keyboard.press("Enter");
    await focusOn(`Delete ${names[0]}`);

    await page.goto(`${stage.world.url}/rules/new`);
    await button(page, "Add attribute").click();
    await button(page, "Add attribute").click();
    await button(page, "Remove attribute 2").press("Enter");
    await focusOn("Remove attribute 1");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.textContent === "Add attribute", undefined, visible);
  });

  test("routes are put in another order and removed, and who is notified otherwise is chosen", async () => {
    const { application } = await stage.rule({ webhookIds: [], useRoutingPolicy: true });
    const webhook = await stage.webhook();
    const before = await stage.call("GET", "/routing");
    const [first, second] = [`First of ${application}`, `Second of ${application}`];
    const scope = { applications: [application] };
    await stage.call(
      "PUT",
      "/routing",
      {
        routes: [
          ...before.routes,
          { name: first, match: { scope, severities: ["WARNING"] } },
          { name: second, match: { scope } },
        ],
        defaultWebhookIds: [],
      },
      { "If-Match": `"${before.version}"` },
    );
    const page = await stage.open("/routing", { viewport: { width: 360, height: 480 }, colorScheme: "dark" });
    await button(page, `Move ${second} up`).click();
    await button(page, `Remove ${second}`).click();
    await button(page, "Edit default").scrollIntoViewIfNeeded();
    const { y } = await button(page, "Save policy").boundingBox();
    assert.ok(y > 0 && y < 200, `what saves stays in view: ${y} px`);
    await button(page, "Edit default").click();
    await page.getByRole("checkbox", { name: webhook.name, exact: true }).check();
    await button(page, "Apply changes").click();
    await said(page, "Not saved yet.");
    assert.deepEqual(await page.evaluate(tooWide), []);
    await button(page, "Save policy").click();
    await said(page, "The routing policy was saved.");
    await page.reload();
    await page.getByRole("region", { name: "Default" }).getByText(`→ ${webhook.name}`).waitFor(visible);
    assert.equal(await page.getByRole("region", { name: second }).count(), 0);

    const stored = await stage.call("GET", "/routing");
    assert.deepEqual(
      stored.routes.slice(before.routes.length).map(({ name }) => name),
      [first],
    );
    assert.deepEqual(stored.defaultWebhookIds, [webhook.id]);
    const [alert] = await stage.fail(application, ["import"]);
    assert.equal((await messageOf(alert)).webhookId, webhook.id);
  });

  test("a team is made, owns a new rule, and its members find the alerts under Mine", async () => {
    const [team, application] = [stage.name("Orders"), stage.name("shop")];
    const webhook = await stage.webhook();
    const page = await stage.open("/teams");
    await button(page, "New team").click();
    await page.keyboard.type(team);
    await list(page, "Members").fill(self);
    await page.keyboard.press("Enter");
    await list(page, "Members").fill("bo@example.com");
    await page.keyboard.press("Enter");
    await list(page, "Webhooks").click();
    await page.getByRole("option", { name: webhook.name, exact: true }).click();
    await page.keyboard.press("Escape");
    await button(page, "Create team").click();
    const row = page.getByRole("row", { name: new RegExp(team) });
    await row.waitFor(visible);
    await page.reload();
    await row.getByText(`${self}, bo@example.com`).waitFor(visible);
    await row.getByText(webhook.name, { exact: true }).waitFor(visible);
    const { teams } = await stage.call("GET", "/teams");
    assert.deepEqual(
      teams.find((one) => one.name === team),
      { name: team, members: [self, "bo@example.com"], webhookIds: [webhook.id] },
    );

    await page.goto(`${stage.world.url}/rules/new`);
    await page.getByLabel("Name").fill(`Failures of ${application}`);
    await list(page, "Applications").fill(application);
    await page.keyboard.press("Enter");
    await page.getByRole("checkbox", { name: webhook.name, exact: true }).check();
    await list(page, "Owner").click();
    await page.getByRole("option", { name: team, exact: true }).click();
    await button(page, "Create rule").click();
    await page.getByRole("row", { name: new RegExp(application) }).waitFor(visible);
    const rule = await named("/rules", `Failures of ${application}`);
    assert.equal(rule.owner, team);
    await page.goto(`${stage.world.url}/rules/${rule.id}`);
    await page.getByText(team, { exact: true }).waitFor(visible);

    while (Date.now() <= Date.parse(rule.armedSince)) await new Promise((done) => setTimeout(done, 10));
    const [alert] = await stage.fail(application, ["import"]);
    const mine = await stage.call("GET", `/alerts?mine=true&application=${application}`);
    assert.deepEqual(
      mine.items.map(({ id }) => id),
      [alert.id],
    );
    await page.goto(`${stage.world.url}/inbox?mine=yes&app=${application}`);
    await page.getByRole("list", { name: "Alerts" }).getByRole("link").first().waitFor(visible);
  });

  test("a silence that recurs is written and saved, and suppresses the messages of its window", async () => {
    const { application } = await stage.rule();
    const name = `Nights of ${application}`;
    const page = await stage.open("/silences/new");
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Reason").fill("CHG-1234");
    await page.getByText("Every week", { exact: true }).click();
    for (const day of ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]) {
      await page.getByRole("checkbox", { name: day, exact: true }).check();
    }
    await page.getByLabel("From", { exact: true }).fill("00:00");
    await page.getByLabel("Duration in hours").fill("24");
    await page.getByLabel("Time zone", { exact: true }).fill("Europe/Berlin");
    stage.asked = /status of 400/;
    await button(page, "Create silence").click();
    await said(page, "Must have at least one condition");
    await list(page, "Applications").fill(application);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.getByRole("option").first().waitFor({ state: "hidden" });
    // The list of time zones takes no room of its own.
    assert.deepEqual(await page.locator("datalist").evaluateAll((all) => all.map((one) => one.offsetHeight)), [0]);
    await page.getByRole("heading", { name: "Next windows" }).waitFor(visible);
    await said(page, /^Only messages about new alerts are counted/);
    await button(page, "Create silence").click();
    const row = page.getByRole("row", { name: new RegExp(name) });
    await row.waitFor(visible);
    await page.reload();
    await row.getByText("Active", { exact: true }).waitFor(visible);
    await row.getByText("every day at 00:00 for 24 h (Europe/Berlin)").waitFor(visible);
    const silence = await named("/silences", name);
    assert.deepEqual(silence.match, { scope: { applications: [application] } });
    assert.deepEqual(
      { ...silence.recurrence, weekdays: silence.recurrence.weekdays.toSorted() },
      {
        timeZone: "Europe/Berlin",
        weekdays: ["FRI", "MON", "SAT", "SUN", "THU", "TUE", "WED"],
        from: "00:00",
        durationMinutes: 1440,
      },
    );
    assert.equal(silence.endsAt, undefined);

    const [alert] = await stage.fail(application, ["import"]);
    const message = await messageOf(alert);
    assert.deepEqual([message.status, message.suppressedBy.id], ["SUPPRESSED", silence.id]);
    assert.deepEqual(stage.receivedOf(application), []);
    await page.reload();
    await row.getByRole("link", { name: "1 message" }).click();
    await page.getByRole("link", { name: new RegExp(application) }).waitFor(visible);
  });

  test("a silence without another window says so, and is extended", async () => {
    const application = stage.name("shop");
    const later = (days) => new Date(Date.now() + days * 86_400_000);
    const weekday = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"][later(3).getUTCDay()];
    const { id } = await stage.call("POST", "/silences", {
      name: `Move of ${application}`,
      match: { scope: { applications: [application] } },
      recurrence: { timeZone: "UTC", weekdays: [weekday], from: "00:00", durationMinutes: 60 },
      endsAt: later(1).toISOString(),
    });
    const page = await stage.open("/silences", { viewport: { width: 360, height: 780 } });
    const row = page.getByRole("row", { name: new RegExp(application) });
    await row.getByText("No further window").waitFor(visible);
    await row.getByText(/^before its end on /).waitFor(visible);
    assert.deepEqual(await page.evaluate(tooWide), []);
    await row.getByRole("link", { name: `Move of ${application}` }).click();
    await page.getByLabel("Ends", { exact: true }).fill("");
    await button(page, "Save silence").click();
    await row.getByText(/Upcoming/).waitFor(visible);
    await page.reload();
    await row.getByText(/^from /).waitFor(visible);
    const { state, endsAt } = await stage.call("GET", `/silences/${id}`);
    assert.deepEqual([state, endsAt], ["UPCOMING", undefined]);
  });

  test("quiet hours of a webhook are written and saved, and hold what is not critical", async () => {
    const { application, webhook } = await stage.rule({ severity: "WARNING" });
    const page = await stage.open(`/webhooks/${webhook.id}`, { colorScheme: "dark" });
    await button(page, "Add quiet hours").click();
    const hours = page.getByRole("group", { name: "Quiet hours 1" });
    // Quiet hours have an end: not all days, but today and tomorrow.
    const other = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][(new Date().getUTCDay() + 3) % 7];
    await hours.getByRole("checkbox", { name: other, exact: true }).uncheck();
    await hours.getByLabel("From", { exact: true }).fill("00:00");
    await hours.getByLabel(/^To /).fill("8:00");
    await hours.getByLabel("Time zone", { exact: true }).fill("UTC");
    stage.asked = /status of 400/;
    await button(page, "Save webhook").click();
    await page.getByText('"8:00" is not a time of day such as 08:00').waitFor(visible);
    await hours.getByLabel(/^To /).fill("24:00");
    assert.deepEqual(await accessibility(page), []);
    await button(page, "Save webhook").click();
    await page.getByRole("row", { name: new RegExp(webhook.name) }).waitFor(visible);
    await page.goto(`${stage.world.url}/webhooks/${webhook.id}`);
    assert.equal(await hours.getByLabel(/^To /).inputValue(), "24:00");
    assert.equal(await hours.getByRole("checkbox", { checked: true }).count(), 6);
    const { quietHours } = await stage.call("GET", `/webhooks/${webhook.id}`);
    assert.deepEqual(
      quietHours.map(({ timeZone, from, to, weekdays }) => [timeZone, from, to, weekdays.length]),
      [["UTC", "00:00", "24:00", 6]],
    );

    const [alert] = await stage.fail(application, ["import"]);
    const message = await messageOf(alert);
    assert.equal(message.status, "PENDING");
    assert.ok(Date.parse(message.quietUntil) > Date.now(), `held until ${message.quietUntil}`);
    await page.goto(`${stage.world.url}/inbox/${alert.id}`);
    await said(page, "Held by quiet hours until then");
    await page.goto(`${stage.world.url}/deliveries/${message.id}`);
    await button(page, "Send now").click();
    await until("the message at its receiver", () => stage.receivedOf(application)[0]);
  });

  test("an alert is assigned to someone, noted and snoozed, and stays so", async () => {
    const { application } = await stage.rule();
    const [alert] = await stage.fail(application, ["import"]);
    const page = await stage.open(`/inbox/${alert.id}`);
    const assigned = page.getByRole("combobox", { name: "Assigned to" });
    await assigned.selectOption(self);
    await button(page, "Unassign").waitFor(visible);
    await page.keyboard.press("s");
    const dialog = page.getByRole("dialog", { name: "Snooze this alert" });
    await dialog.getByLabel("How long").selectOption("For 4 hours");
    await dialog.getByRole("button", { name: "Snooze" }).click();
    await button(page, "End snooze").waitFor(visible);
    await page.reload();
    await button(page, "End snooze").waitFor(visible);
    assert.equal(await assigned.inputValue(), self);
    const { assignee, snoozedUntil } = await stage.call("GET", `/alerts/${alert.id}`);
    assert.equal(assignee, self);
    assert.ok(Math.abs(Date.parse(snoozedUntil) - Date.now() - 4 * 3_600_000) < 600_000, snoozedUntil);

    await page.getByRole("link", { name: "Open issue" }).click();
    await page.getByLabel("New note").fill("ERP restarts at noon.");
    await button(page, "Add note").click();
    const notes = page.getByRole("list", { name: "Notes" });
    await notes.getByText("ERP restarts at noon.").waitFor(visible);
    await page.reload();
    await notes.getByText("ERP restarts at noon.").waitFor(visible);
    const { items } = await stage.call("GET", `/alerts/${alert.id}/notes`);
    assert.deepEqual(
      items.map(({ author, text }) => [author, text]),
      [[self, "ERP restarts at noon."]],
    );
  });
});
