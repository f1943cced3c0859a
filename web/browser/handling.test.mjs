// Who handles alerts and until when they are quiet, in a real browser against the real binary.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { accessibility, tooWide, visible } from "./look.mjs";
import { createStage, rowOf, rows } from "./stage.mjs";

describe("handling alerts", { timeout: 1_200_000 }, () => {
  let stage;
  let self;

  before(async () => {
    stage = await createStage();
    self = (await stage.call("GET", "/me")).email;
    await stage.call("POST", "/users", {
      email: "bo@example.com",
      name: "Bo",
      role: "operator",
      password: "a long enough password",
    });
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  /** Who handles the alerts of an application, by route. */
  const handlers = async (application) => {
    const { items } = await stage.call("GET", `/alerts?application=${application}`);
    return Object.fromEntries(items.map(({ exchange, assignee = "" }) => [exchange.route, assignee]));
  };

  test("an issue says on one line who has acknowledged an alert, beside a long error", async () => {
    const { application } = await stage.rule();
    const message = "a long text that the table has to break ".repeat(20);
    const [alert] = await stage.fail(application, ["only"], { message });
    await stage.call("POST", `/alerts/${alert.id}/acknowledge`);
    const { signature } = (await stage.call("GET", `/alerts/groups?by=issue&application=${application}`)).items[0];
    const page = await stage.open(
      `/issue?${new URLSearchParams({ app: application, route: "only", error: signature })}`,
    );
    const by = page.getByText(`by ${self}`, { exact: true });
    await by.waitFor(visible);
    // Names are broken at hyphens, too.
    await by.evaluate((name) => {
      name.textContent = "by ada-maria.lovelace@engines.example";
    });
    const { height } = await page.getByText("by ada-maria").boundingBox();
    assert.ok(height < 30, `${height} px high`);
  });

  test("several are taken by key, given back, and passed to someone from the bar", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["first", "second", "third"]);
    const page = await stage.open(`/inbox?fold=none&app=${application}`);
    await rowOf(page, "third").waitFor(visible);
    await rows(page).first().focus();
    await page.keyboard.press("x");
    await page.keyboard.press("Shift+J");
    await page.getByText("2 selected").waitFor(visible);
    await page.keyboard.press("m");
    await page.getByText(`2 alerts assigned to ${self}.`).waitFor(visible);
    assert.deepEqual(Object.values(await handlers(application)).sort(), ["", self, self].sort());
    await page.keyboard.press("z");
    await page.getByText("2 alerts restored.").waitFor(visible);
    assert.deepEqual(Object.values(await handlers(application)), ["", "", ""]);

    const [first] = (await stage.call("GET", `/alerts?application=${application}`)).items;
    await stage.call("POST", `/alerts/${first.id}/assign`, { assignee: "bo@example.com" });
    await page.getByRole("checkbox", { name: "Select all matching alerts" }).check();
    await page.getByRole("button", { name: /^Assign to me/ }).click();
    await page.getByText("2 alerts assigned to").waitFor(visible);
    await page.getByText("1 alert not changed: others are handling them").waitFor(visible);
    assert.deepEqual(Object.values(await handlers(application)).sort(), ["bo@example.com", self, self].sort());

    await page.getByRole("checkbox", { name: "Select all matching alerts" }).check();
    await page.getByRole("button", { name: "Assign…" }).click();
    const dialog = page.getByRole("dialog", { name: "Assign 3 alerts" });
    await dialog.waitFor(visible);
    assert.deepEqual(await accessibility(page), []);
    await dialog.getByRole("combobox", { name: "Assign to" }).selectOption("Unassigned");
    await dialog.getByRole("checkbox", { name: "Include alerts that others are handling" }).check();
    await dialog.getByRole("button", { name: "Assign" }).click();
    await page.getByText("3 alerts unassigned.").waitFor(visible);
    assert.deepEqual(Object.values(await handlers(application)), ["", "", ""]);
  });

  test("a folded row beside its trend says who has acknowledged it", async () => {
    const { application } = await stage.rule();
    for (const { id } of await stage.fail(application, ["import", "import"])) {
      await stage.call("POST", `/alerts/${id}/acknowledge`);
    }
    const page = await stage.open(`/inbox?state=acknowledged&app=${application}`);
    const row = page.getByRole("button", { name: /×2/ });
    await row.getByRole("img", { name: /in 24 hours/ }).waitFor(visible);
    const name = row.getByText(self.replace(/@.*$/, ""), { exact: true });
    assert.ok(
      await name.evaluate(({ parentElement }) => parentElement.scrollWidth <= parentElement.clientWidth),
      "the name is not cut",
    );
  });

  test("the palette passes what is selected to someone", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["first", "second"]);
    const page = await stage.open(`/inbox?fold=none&app=${application}`);
    await rowOf(page, "first").waitFor(visible);
    await rows(page).first().focus();
    await page.keyboard.press("x");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search or run a command" }).fill("hand over");
    await page.getByRole("option", { name: /^Assign 1 alert to someone/ }).click();
    const dialog = page.getByRole("dialog", { name: "Assign 1 alert" });
    await dialog.getByRole("combobox", { name: "Assign to" }).selectOption("bo@example.com");
    await dialog.getByRole("button", { name: "Assign" }).click();
    await page.getByText("1 alert assigned to bo@example.com.").waitFor(visible);
    await page.getByText("Assigned to bo@example.com").first().waitFor({ state: "attached" });
  });

  test("on a phone, the bar of a selection stays within the screen", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["first", "second"]);
    const page = await stage.open(`/inbox?fold=none&app=${application}`, { viewport: { width: 375, height: 700 } });
    await rowOf(page, "first").waitFor(visible);
    await page.getByRole("checkbox", { name: "Select all matching alerts" }).check();
    await page.getByRole("button", { name: "Assign…" }).waitFor(visible);
    assert.deepEqual(await page.evaluate(tooWide), []);
    assert.deepEqual(await accessibility(page), []);
  });

  test("messages lie over an open dialog, and what they offer can be done", async () => {
    const { application } = await stage.rule();
    const [alert] = await stage.fail(application, ["first"]);
    const page = await stage.open(`/inbox/${alert.id}?app=${application}&fold=none`);
    await page.getByRole("button", { name: /^Acknowledge/ }).click();
    await page.getByText("acknowledged.").waitFor(visible);
    await page.keyboard.press("s");
    await page.getByRole("dialog", { name: "Snooze this alert" }).waitFor(visible);
    await page.getByRole("button", { name: "Undo" }).click({ timeout: 5_000 });
    await page.getByText("1 alert restored.").waitFor(visible);
    assert.equal((await stage.call("GET", `/alerts/${alert.id}`)).state, "FIRING");
    assert.deepEqual(await accessibility(page), []);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
  });

  test("a field that is disabled while the form is saved has the focus afterwards", async () => {
    const page = await stage.open("/inbox");
    await page.getByRole("button", { name: "Views" }).click();
    const dialog = page.getByRole("dialog", { name: "Views" });
    const name = stage.name("View");
    const field = dialog.getByLabel("Save these filters as");
    await field.fill(name);
    await field.press("Enter");
    await dialog.getByRole("link", { name }).waitFor(visible);
    assert.ok(await field.evaluate((input) => input === document.activeElement && !input.matches(":disabled")));
  });

  test("an alert is snoozed and woken up, and the list leaves it out meanwhile", async () => {
    const { application } = await stage.rule();
    const [alert] = await stage.fail(application, ["first"]);
    const page = await stage.open(`/inbox/${alert.id}`);
    await page.getByRole("button", { name: /^Snooze/ }).click();
    await page.getByRole("dialog", { name: "Snooze this alert" }).getByRole("button", { name: "Snooze" }).click();
    await page.getByRole("button", { name: /^End snooze/ }).waitFor(visible);
    const { items } = await stage.call("GET", `/alerts?application=${application}&snoozed=false`);
    assert.equal(items.length, 0);
    await page.keyboard.press("s");
    await page.getByRole("button", { name: /^Snooze/ }).waitFor(visible);
  });
});
