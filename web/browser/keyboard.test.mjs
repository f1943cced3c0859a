// From a new rule to a resolved alert with the keyboard alone, as somebody goes who does not see the screen: the focus is
// always somewhere and can be seen there, and what happens is said once.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { idle, visible } from "./look.mjs";
import { createStage } from "./stage.mjs";

/** Records what the live regions of a page announce, each change once. */
function listen() {
  window.said = [];
  const regions = "[aria-live=polite],[aria-live=assertive],[role=status],[role=alert]";
  new MutationObserver((changes) => {
    const changed = new Set();
    for (const { target } of changes) {
      const region = (target instanceof Element ? target : target.parentElement)?.closest(regions);
      if (region) changed.add(region);
    }
    for (const region of changed) if (region.textContent) window.said.push(region.textContent);
  }).observe(document, { subtree: true, childList: true, characterData: true });
}

/** The element with the focus: its name, and whether it can be seen. */
function focused() {
  const element = document.activeElement;
  const drawn = (one) => one !== null && getComputedStyle(one).outlineStyle === "solid";
  return {
    tag: element.tagName,
    name: element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent ?? "",
    alert: element.getAttribute("data-alert"),
    // A field of entries draws it around the entries.
    seen: drawn(element) || drawn(element.closest(".mantine-TagsInput-input")),
  };
}

/** An answer that refuses a request. */
const refusal = { type: "about:blank", title: "Conflict", status: 409, code: "conflict", detail: "It is needed." };

describe("with the keyboard alone", { timeout: 960_000 }, () => {
  let stage;
  let page;
  const now = () => page.evaluate(() => window.focused());
  const press = (key) => page.keyboard.press(key);
  /** Waits until an element has the focus, and returns it. */
  const focusOn = async (name) => {
    await page.waitForFunction((wanted) => new RegExp(wanted).test(window.focused().name.trim()), name.source, visible);
    return now();
  };
  /** Moves to a control by Tab. The focus must be visible all the way. */
  const tabTo = async (name) => {
    for (let step = 0; step < 80; step++) {
      await press("Tab");
      const at = await now();
      if (at.tag !== "BODY") assert.ok(at.seen, `the focus on ${at.tag} ${at.name} cannot be seen`);
      if (name.test(at.name.trim())) return;
    }
    assert.fail(`${name} is not reached`);
  };
  const said = (pattern) =>
    page.evaluate((source) => window.said.filter((text) => new RegExp(source).test(text)).length, pattern.source);
  /** Waits until something is announced, and checks that it is announced once. */
  const saidOnce = async (pattern) => {
    await page.waitForFunction(
      (source) => window.said.some((text) => new RegExp(source).test(text)),
      pattern.source,
      visible,
    );
    await idle(page);
    assert.equal(await said(pattern), 1, `${pattern} is said once`);
  };

  /** Opens the page of a test, and records its announcements. */
  const enter = async (path, options = {}) => {
    page = await stage.open("", { viewport: { width: 1280, height: 800 }, ...options });
    await page.addInitScript(listen);
    await page.addInitScript(`window.focused = ${focused}`);
    await page.goto(stage.world.url + path);
  };
  const focusIsOnRow = (id) =>
    page.waitForFunction((wanted) => document.activeElement?.getAttribute("data-alert") === wanted, id, visible);

  before(async () => {
    stage = await createStage();
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  test("one signs in, and goes on from the page", async () => {
    await enter("/", { storageState: undefined });
    await focusOn(/^E-mail address/);
    await page.keyboard.type("ada@example.com");
    await press("Tab");
    await page.keyboard.type("correct horse battery");
    await press("Enter");
    assert.equal((await focusOn(/^Inbox$/)).tag, "H1");
  });

  test("a rule is written beside its preview, and saved", async () => {
    const webhook = await stage.webhook();
    const application = stage.name("orders");
    const name = `Failed ${application}`;
    await enter("/inbox");
    await tabTo(/^Rules$/);
    await press("Enter");
    await saidOnce(/^Rules$/);
    await tabTo(/^New rule$/);
    await press("Enter");
    // The link that was followed has the same name, until the page is there.
    await page.getByRole("heading", { name: "New rule", level: 1 }).waitFor({ state: "visible" });
    assert.equal((await focusOn(/^New rule$/)).tag, "H1", "what was followed is gone: one goes on from the title");
    await tabTo(/^Name$/);
    await page.keyboard.type(name);
    await tabTo(/^Applications$/);
    await page.keyboard.type(application);
    await press("Enter");
    await tabTo(new RegExp(`^${webhook.name}$`));
    await press("Space");
    await saidOnce(new RegExp(`^Whenever an exchange of ${application} fails, notify ${webhook.name} once\\.$`));
    await saidOnce(/this would have raised no alerts/);
    await tabTo(/^Create rule$/);
    await press("Enter");
    await saidOnce(new RegExp(`“${name}” was created\\.`));
    assert.equal((await focusOn(/^Rules$/)).tag, "H1");
  });

  test("alerts are opened, acknowledged and resolved, and the focus goes on to the next", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["first", "second", "third"]);
    await enter(`/inbox?app=${application}`);
    const rows = page.getByRole("list", { name: "Alerts" }).getByRole("link");
    await page.waitForFunction(() => document.querySelectorAll("[data-alert]").length === 3, undefined, visible);
    const ids = await rows.evaluateAll((all) => all.map((row) => row.dataset.alert));

    await press("j");
    await press("Enter");
    await page.getByRole("article", { name: "Alert" }).getByRole("heading", { name: "Timeline" }).waitFor(visible);
    assert.equal((await now()).alert, ids[0]);
    await press("a");
    await saidOnce(/ acknowledged\.Undo$/);
    await press("r");
    await saidOnce(/ resolved\.Undo$/);
    assert.equal((await now()).alert, ids[0], "what is open keeps its row");
    await press("Escape");
    await focusIsOnRow(ids[1]);
    assert.equal(await rows.count(), 2);

    await press("Enter");
    await page.getByRole("article", { name: "Alert" }).waitFor(visible);
    await page.getByRole("link", { name: "Close" }).focus();
    await press("Enter");
    await focusIsOnRow(ids[1]);
    await press("a");
    await focusIsOnRow(ids[2]);
  });

  test("Escape closes an open list alone, and then the dialog", async () => {
    await stage.webhook();
    await enter("/teams");
    await page.getByRole("button", { name: "New team" }).click();
    const dialog = page.getByRole("dialog", { name: "New team" });
    await dialog.getByLabel("Webhooks").click();
    await page.getByRole("option").first().waitFor(visible);
    await press("Escape");
    await page.getByRole("option").first().waitFor({ state: "detached" });
    assert.equal(await dialog.isVisible(), true);
    await press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("a dialog gives the focus back to where it came from", async () => {
    const { application, rule } = await stage.rule();
    await stage.fail(application, ["first"]);
    await enter(`/inbox?app=${application}`);
    const row = page.getByRole("list", { name: "Alerts" }).getByRole("link");
    await row.waitFor(visible);
    const id = await row.getAttribute("data-alert");
    await press("j");
    await focusIsOnRow(id);
    for (const [key, first] of [
      ["?", /^Single-key shortcuts$/],
      ["Control+k", /^Search or run a command$/],
    ]) {
      await press(key);
      await focusOn(first);
      await press("Escape");
      await focusIsOnRow(id);
    }
    for (let step = 0; step < 40 && !/^Rules$/.test((await now()).name); step++) await press("Shift+Tab");
    await press("Enter");
    await tabTo(new RegExp(`^Delete ${rule.name}$`));
    await press("Enter");
    await page.getByRole("dialog").waitFor(visible);
    await press("Escape");
    await focusOn(new RegExp(`^Delete ${rule.name}$`));
  });

  test("what is under way, or is refused, keeps the focus", async () => {
    stage.asked = /status of 409/;
    const { rule } = await stage.rule();
    await enter(`/rules?q=${encodeURIComponent(rule.name)}`);
    const toggle = new RegExp(`^${rule.name} is enabled$`);
    await page.route("**/api/v1/rules/*", (route) =>
      route.request().method() === "DELETE" ? route.fulfill({ status: 409, json: refusal }) : route.fallback(),
    );
    await tabTo(toggle);
    await Promise.all([page.waitForResponse(/\/disable$/), press("Space")]);
    await page.getByRole("switch", { checked: false }).waitFor(visible);
    await focusOn(toggle);
    await tabTo(new RegExp(`^Delete ${rule.name}$`));
    await press("Enter");
    await tabTo(/^Delete rule$/);
    await press("Enter");
    await page.getByText(refusal.detail).waitFor(visible);
    await focusOn(/^Delete rule$/);
  });
});
