// What a person does with rules and webhooks, in a real browser against the real binary. Each test has things of its own.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { inBothThemes, tooWide, visible } from "./look.mjs";
import { createStage, rowOf } from "./stage.mjs";

describe("rules and webhooks", { timeout: 960_000 }, () => {
  let stage;

  before(async () => {
    stage = await createStage();
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  test("a rule is edited beside what it would have raised, and its message is about a real exchange", async () => {
    // Of a template that is half typed there is no preview.
    stage.asked = /status of 400/;
    const { application, rule, webhook } = await stage.rule();
    await stage.fail(application, ["early", "middle"]);
    await stage.fail(application, ["late"]);
    const page = await stage.open("/rules");
    await page.getByRole("link", { name: rule.name, exact: true }).click();
    await page.getByText(`Whenever an exchange of ${application} fails, notify ${webhook.name} once.`).waitFor(visible);
    await page.getByRole("img", { name: /^3 alerts, per 15 minutes/ }).waitFor(visible);
    await page.getByText(/created the rule/).waitFor(visible);
    await page.getByRole("link", { name: "Edit", exact: true }).click();
    await page
      .getByText(/this would have raised 3 alerts: 3 messages/)
      .last()
      .waitFor(visible);
    const preview = page.getByRole("complementary", { name: "Preview" });
    assert.match(
      await preview.getByLabel("About").locator("option:checked").textContent(),
      new RegExp(`${application} · late`),
    );
    await page.getByLabel("Title", { exact: true }).fill("");
    await page.getByLabel("Title", { exact: true }).pressSequentially("Order lost: {{rou");
    await page.getByRole("option", { name: /exchange\.route/ }).waitFor(visible);
    await page.keyboard.press("Enter");
    await preview.getByText(/Order lost: late/).waitFor(visible);
    await page.reload();
    await page
      .getByText(/^Your unsaved changes from/)
      .last()
      .waitFor(visible);
    assert.equal(await page.getByLabel("Title", { exact: true }).inputValue(), "Order lost: {{exchange.route}}");
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByText(`“${rule.name}” was saved.`).waitFor(visible);
    const arrived = async (n) => {
      for (const end = Date.now() + 30_000; stage.receivedOf(application).length < n && Date.now() < end; ) {
        await page.waitForTimeout(100);
      }
      return stage.receivedOf(application).length;
    };
    assert.equal(await arrived(3), 3);
    // Before the preview has chosen an exchange, a test message is about a sample.
    await preview.getByText(/Order lost: late/).waitFor(visible);
    await page.getByRole("button", { name: "Send test message" }).click();
    await page.getByText(`Delivered to ${webhook.name} in`).waitFor(visible);
    assert.equal(await arrived(4), 4);
  });

  test("two people who edit a rule choose which version stays", async () => {
    stage.asked = /status of 412/;
    const { rule } = await stage.rule();
    const page = await stage.open(`/rules/${rule.id}/edit`);
    const other = await stage.open(`/rules/${rule.id}/edit`);
    await other.getByLabel("Name").fill(`${rule.name} of ours`);
    await page.getByLabel("Error message contains", { exact: true }).fill("ERP");
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByText(/” was saved\./).waitFor(visible);
    await other.getByRole("button", { name: "Save rule" }).click();
    const dialog = other.getByRole("dialog", { name: "Someone else has changed this rule" });
    await dialog.waitFor(visible);
    assert.deepEqual(await inBothThemes(other), [], "the conflict");
    await dialog.getByRole("button", { name: "Use these versions" }).click();
    assert.equal(await other.getByLabel("Error message contains", { exact: true }).inputValue(), "ERP");
    await other.getByRole("button", { name: "Save rule" }).click();
    await other.getByText(`“${rule.name} of ours” was saved.`).waitFor(visible);
    const saved = await stage.call("GET", `/rules/${rule.id}`);
    assert.deepEqual([saved.name, saved.filter.errorMessageContains], [`${rule.name} of ours`, "ERP"]);
  });

  test("a window rule is created, disabled and deleted in the list", async () => {
    const page = await stage.open("/rules/new");
    const name = stage.name("Many failures");
    await page.getByLabel("Name").fill(name);
    await page.getByText("A number of exchanges", { exact: true }).click();
    await page.getByLabel("Threshold", { exact: true }).fill("1000");
    await page.getByLabel("Group by", { exact: true }).selectOption("Route");
    await page.getByRole("button", { name: "Create rule" }).click();
    const row = page.getByRole("row", { name: new RegExp(name) });
    await row.waitFor(visible);
    await page.getByRole("switch", { name: `${name} is enabled` }).focus();
    await page.keyboard.press("Space");
    await page.getByRole("row", { name: new RegExp(`${name}.*Disabled`) }).waitFor(visible);
    await page.getByRole("button", { name: `Delete ${name}` }).click();
    await page.getByText(/Its open alerts stay/).waitFor(visible);
    await page.getByRole("button", { name: "Delete rule" }).click();
    await row.waitFor({ state: "detached" });
  });

  test("a webhook that a rule needs stays, and the page names the rule", async () => {
    stage.asked = /status of 409/;
    const { rule, webhook } = await stage.rule();
    const page = await stage.open("/webhooks");
    await page.getByRole("button", { name: `Delete ${webhook.name}` }).click();
    const conflict = page.waitForResponse((answer) => answer.status() === 409);
    await page.getByRole("button", { name: "Delete webhook" }).click();
    await conflict;
    await page.getByRole("dialog").getByText(rule.name).waitFor(visible);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("row", { name: new RegExp(webhook.name) }).waitFor(visible);
  });

  test("a rule is deleted, and its alerts stay", async () => {
    const { application, rule } = await stage.rule();
    await stage.fail(application, ["kept"]);
    const page = await stage.open("/rules");
    await page.getByRole("button", { name: `Delete ${rule.name}` }).click();
    await page.getByRole("button", { name: "Delete rule" }).click();
    await page.getByRole("row", { name: new RegExp(rule.name) }).waitFor({ state: "detached" });
    await page.goto(`${stage.world.url}/inbox?app=${application}`);
    await rowOf(page, "kept").waitFor(visible);
  });

  test("a webhook's body is written in an editor that completes variables, and is sent as it says", async () => {
    stage.asked = /status of 400/;
    const { application, rule, webhook } = await stage.rule();
    const page = await stage.open(`/webhooks/${webhook.id}`);
    const body = page.locator(".cm-content").and(page.getByLabel("Body"));
    await body.click();
    await page.keyboard.type('{ "what": "{{rou');
    await page.getByRole("option", { name: /exchange\.route/ }).waitFor(visible);
    assert.deepEqual(await inBothThemes(page), [], "completion");
    await page.keyboard.press("Enter");
    const text = () => body.evaluate((element) => element.textContent.trim());
    assert.equal(await text(), '{ "what": "{{exchange.route}}"}');

    // Without the alert's id, a receiver could not tell a repeat.
    await page.getByRole("button", { name: "Save webhook" }).click();
    await page.getByText(/alert\.id.* must be in the body/).waitFor(visible);
    assert.equal(await body.getAttribute("aria-invalid"), "true");
    assert.equal(await body.evaluate((element) => element === document.activeElement), true);
    await page.keyboard.press("Control+End");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.type(', "id": "{{alert.id}}');
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    assert.equal(await body.evaluate((element) => element === document.activeElement), false, "Tab leaves the editor");
    await page.getByRole("button", { name: "Save webhook" }).click();
    await page.getByText(`“${webhook.name}” was saved.`).waitFor(visible);
    const [alert] = await stage.fail(application, ["by-template"]);
    const sent = () => stage.world.received.find((one) => one.id === alert.id);
    for (const end = Date.now() + 15_000; !sent() && Date.now() < end; ) {
      await new Promise((done) => setTimeout(done, 50));
    }
    assert.deepEqual(sent(), { what: "by-template", id: alert.id });
    assert.ok(rule.id);
  });

  test("an empty body offers an example that the API accepts, on a phone too", async () => {
    const { webhook } = await stage.rule();
    const page = await stage.open(`/webhooks/${webhook.id}`, { viewport: { width: 360, height: 780 } });
    await page.locator(".cm-content").waitFor(visible);
    await page.getByRole("button", { name: "Insert example" }).click();
    await page.locator(".cm-content").getByText("{{alert.title}}").waitFor(visible);
    assert.deepEqual(await page.evaluate(tooWide), []);
    await page.getByRole("button", { name: "Save webhook" }).click();
    await page.getByText(`“${webhook.name}” was saved.`).waitFor(visible);
    assert.match((await stage.call("GET", `/webhooks/${webhook.id}`)).bodyTemplate, /"\{\{alert\.id\}\}"/);
  });
});
