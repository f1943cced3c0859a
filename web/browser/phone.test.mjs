// What a person on call does with a thumb on a phone, in a real browser against the real binary: every step is a tap on what
// is on the screen and large enough.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { tooWide, visible } from "./look.mjs";
import { createStage, rowOf } from "./stage.mjs";

const phone = { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true };
/** The least size of what a thumb has to hit, in px (WCAG 2.5.8). */
const leastTarget = 24;

/** Taps the middle of an element, where nothing else may lie. A finger would not see what a script scrolls past it. */
async function tap(locator) {
  await locator.waitFor(visible);
  await locator.scrollIntoViewIfNeeded();
  const { width, height } = await locator.boundingBox();
  assert.ok(width >= leastTarget && height >= leastTarget, `${await locator.textContent()}: ${width} x ${height} px`);
  // Playwright refuses a tap that another element would get.
  await locator.tap();
}

describe("with a thumb", { timeout: 1_200_000 }, () => {
  let stage;
  let self;

  before(async () => {
    stage = await createStage();
    self = (await stage.call("GET", "/me")).email;
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  const alertOf = async (application) => (await stage.call("GET", `/alerts?application=${application}`)).items[0];
  /** Waits until the stored alert of an application is as wanted. */
  const becomes = async (application, wanted) => {
    for (const end = Date.now() + 15_000; Date.now() < end; ) {
      if (wanted(await alertOf(application))) return;
      await new Promise((done) => setTimeout(done, 100));
    }
    assert.fail(JSON.stringify(await alertOf(application)));
  };

  test("an alert is opened, taken, snoozed, acknowledged and resolved", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["only"]);
    const page = await stage.open(`/inbox?fold=none&app=${application}`, phone);
    await tap(rowOf(page, "only"));
    const detail = page.getByRole("article", { name: "Alert" });
    await detail.getByRole("heading", { name: "Timeline" }).waitFor({ state: "attached" });
    // All of these are there without scrolling.
    for (const name of [/^Acknowledge/, /^Resolve/, /^Assign to me/, /^Snooze/, /^Silence/]) {
      const { y, height } = await detail.locator("a, button").filter({ hasText: name }).first().boundingBox();
      assert.ok(y >= 0 && y + height < phone.viewport.height / 4, `${name} is at ${y} px`);
    }
    await tap(detail.getByRole("button", { name: /^Assign to me/ }));
    await becomes(application, ({ assignee }) => assignee === self);
    await tap(detail.getByRole("button", { name: /^Snooze/ }));
    await tap(page.getByRole("dialog", { name: "Snooze this alert" }).getByRole("button", { name: "Snooze" }));
    await detail.getByRole("button", { name: /^End snooze/ }).waitFor(visible);
    await tap(detail.getByRole("button", { name: /^Acknowledge/ }));
    await becomes(application, ({ state }) => state === "ACKNOWLEDGED");
    await tap(detail.getByRole("button", { name: /^Resolve/ }));
    await becomes(application, ({ state }) => state === "RESOLVED");
    assert.deepEqual(await page.evaluate(tooWide), []);
    await tap(page.getByRole("link", { name: "Back to the inbox" }).first());
    await page.getByRole("heading", { name: "No matching alerts" }).waitFor(visible);
  });

  test("an alert is passed to someone else", async () => {
    await stage.call("POST", "/users", {
      ...{ email: "bo@example.com", name: "Bo", role: "operator", password: "a long enough password" },
    });
    const { application, rule } = await stage.rule();
    const [alert] = await stage.fail(application, ["only"]);
    await stage.call("POST", `/alerts/${alert.id}/assign`, { assignee: self });
    const page = await stage.open(`/inbox/${alert.id}`, phone);
    await page.getByText(rule.name).first().waitFor(visible);
    await page.getByRole("combobox", { name: /^Assigned to/ }).selectOption("bo@example.com");
    await becomes(application, ({ assignee }) => assignee === "bo@example.com");
  });

  test("a rule is opened from the list, edited and saved", async () => {
    const { application, rule } = await stage.rule();
    const page = await stage.open("/rules", phone);
    await page.getByRole("searchbox", { name: "Search rules" }).fill(application);
    const row = page.getByRole("row", { name: new RegExp(rule.name) });
    await tap(row.getByRole("link", { name: rule.name, exact: true }));
    await tap(page.getByRole("link", { name: "Edit", exact: true }));
    await page.getByLabel("Error message contains", { exact: true }).fill("ERP");
    const parts = page.getByRole("navigation", { name: "Parts of the rule" });
    await tap(parts.getByRole("button", { name: "Trigger" }));
    await tap(page.getByText("A number of exchanges", { exact: true }));
    await page.getByLabel("Threshold", { exact: true }).fill("5");
    await page
      .getByText(/5 exchanges of/)
      .first()
      .waitFor({ state: "attached" });
    assert.deepEqual(await page.evaluate(tooWide), []);
    await tap(page.getByRole("button", { name: "Save rule" }));
    await page.getByText(`“${rule.name}” was saved.`).waitFor(visible);
    const { fireMode, threshold, filter } = await stage.call("GET", `/rules/${rule.id}`);
    assert.deepEqual([fireMode, threshold, filter.errorMessageContains], ["COUNT_IN_WINDOW", 5, "ERP"]);
  });

  test("an alert is silenced from its page", async () => {
    const { application } = await stage.rule();
    const [alert] = await stage.fail(application, ["only"]);
    const page = await stage.open(`/inbox/${alert.id}`, phone);
    await tap(page.getByRole("article", { name: "Alert" }).getByRole("link", { name: "Silence" }));
    const name = stage.name("Upgrade");
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByLabel("Reason").fill("The ERP is upgraded.");
    await tap(page.getByRole("button", { name: "2 h", exact: true }));
    assert.deepEqual(await page.evaluate(tooWide), []);
    await tap(page.getByRole("button", { name: "Create silence" }));
    await page.getByRole("row", { name: new RegExp(name) }).waitFor(visible);
    const [silence] = (await stage.call("GET", "/silences")).items.filter((one) => one.name === name);
    assert.deepEqual(silence.match.scope.applications, [application]);
  });

  test("the switch of a rule that catches up is not covered by its health", async () => {
    const { application, rule } = await stage.rule();
    const page = await stage.open("", phone);
    await page.route("**/api/v1/rules?*", async (route) => {
      const answer = await route.fetch();
      const { items } = await answer.json();
      const health = { lagSeconds: 1, backfillFrom: new Date(Date.now() - 3_600_000).toISOString(), lateLastHour: 3 };
      await route.fulfill({ json: { items: items.map((one) => ({ ...one, health: { ...one.health, ...health } })) } });
    });
    await page.goto(`${stage.world.url}/rules`);
    await page.getByRole("searchbox", { name: "Search rules" }).fill(application);
    const row = page.getByRole("row", { name: new RegExp(rule.name) });
    const said = row.getByText("3 arrived late");
    await said.waitFor(visible);
    const { right, edge } = await row.evaluate((element) => {
      const cell = [...element.querySelectorAll("td")].find((one) => one.textContent.includes("Backfill from"));
      const range = document.createRange();
      range.selectNodeContents(cell);
      return {
        right: range.getBoundingClientRect().right,
        edge: element.querySelector("[role=switch]").parentElement.getBoundingClientRect().left,
      };
    });
    assert.ok(right <= edge, `the health ends at ${right} px, the switch begins at ${edge} px`);
    await page.unrouteAll({ behavior: "wait" });
  });
});
