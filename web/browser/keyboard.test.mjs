// From a new rule to a resolved alert with the keyboard alone, as somebody goes who does not see the screen: the focus is
// always somewhere and can be seen there, and what happens is said once.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { idle, visible } from "./look.mjs";
import { createWorld } from "./world.mjs";

/** Keeps what the live regions of a page say, each change once. */
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

/** What has the focus: its name, and whether that can be seen. */
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

describe("with the keyboard alone", { timeout: 240_000 }, () => {
  let world;
  let page;
  const now = () => page.evaluate(() => window.focused());
  const press = (key) => page.keyboard.press(key);
  /** Waits until the focus is on something, and returns what it is. */
  const focusOn = async (name) => {
    await page.waitForFunction((wanted) => new RegExp(wanted).test(window.focused().name.trim()), name.source, visible);
    return now();
  };
  /** Goes on to a control by Tab. The focus can be seen all the way. */
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
  /** Waits until something is said, and holds that it is said once. */
  const saidOnce = async (pattern) => {
    await page.waitForFunction(
      (source) => window.said.some((text) => new RegExp(source).test(text)),
      pattern.source,
      visible,
    );
    await idle(page);
    assert.equal(await said(pattern), 1, `${pattern} is said once`);
  };

  before(async () => {
    world = await createWorld();
    const context = await world.browser.newContext({ viewport: { width: 1280, height: 800 } });
    page = await context.newPage();
    await page.addInitScript(listen);
    await page.addInitScript(`window.focused = ${focused}`);
    await page.goto(world.url);
    await focusOn(/^E-mail address/);
    await page.keyboard.type("ada@example.com");
    await press("Tab");
    await page.keyboard.type("correct horse battery");
    await press("Enter");
    assert.equal((await focusOn(/^Inbox$/)).tag, "H1", "who has signed in goes on from the page");
    await page.getByRole("heading", { name: "No rules yet" }).waitFor(visible);
    await page.request.post(`${world.url}/api/v1/webhooks`, {
      data: { name: "Receiver", kind: "generic", url: world.receiver },
    });
  });
  after(async () => {
    await world?.close();
  });

  test("a rule is written beside its preview, and saved", async () => {
    await tabTo(/^Rules$/);
    await press("Enter");
    await saidOnce(/^Rules$/);
    await tabTo(/^Create the first rule$/);
    await press("Enter");
    assert.equal((await focusOn(/^New rule$/)).tag, "H1", "what was followed is gone: one goes on from the title");
    await tabTo(/^Name$/);
    await page.keyboard.type("Failed orders");
    await tabTo(/^Applications$/);
    await page.keyboard.type("orders");
    await press("Enter");
    await tabTo(/^Receiver$/);
    await press("Space");
    await saidOnce(/^Whenever an exchange of orders fails, tell Receiver once\.$/);
    await saidOnce(/this would have raised no alert/);
    await tabTo(/^Create the rule$/);
    await press("Enter");
    await saidOnce(/“Failed orders” was created\./);
    assert.equal((await focusOn(/^Rules$/)).tag, "H1");
  });

  test("alerts are opened, acknowledged and resolved, and the focus goes on to the next", async () => {
    await world.fail({ id: "x-1", route: "first" }, { id: "x-2", route: "second" }, { id: "x-3", route: "third" });
    for (let step = 0; step < 12 && !/^Inbox/.test((await now()).name); step++) await press("Shift+Tab");
    await press("Enter");
    await saidOnce(/^Inbox$/);
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
    await page.waitForFunction((id) => document.activeElement?.getAttribute("data-alert") === id, ids[1], visible);
    assert.equal(await rows.count(), 2);

    await press("Enter");
    await page.getByRole("article", { name: "Alert" }).waitFor(visible);
    await page.getByRole("link", { name: "Close" }).focus();
    await press("Enter");
    await page.waitForFunction((id) => document.activeElement?.getAttribute("data-alert") === id, ids[1], visible);
    await press("a");
    await page.waitForFunction((id) => document.activeElement?.getAttribute("data-alert") === id, ids[2], visible);
  });

  test("a dialog gives the focus back to where it came from", async () => {
    const row = (await now()).alert;
    assert.ok(row);
    for (const [key, first] of [
      ["?", /^Single-key shortcuts$/],
      ["Control+k", /^Search or run a command$/],
    ]) {
      await press(key);
      await focusOn(first);
      await press("Escape");
      await page.waitForFunction((id) => document.activeElement?.getAttribute("data-alert") === id, row, visible);
    }
    for (let step = 0; step < 40 && !/^Rules$/.test((await now()).name); step++) await press("Shift+Tab");
    await press("Enter");
    await tabTo(/^Delete Failed orders$/);
    await press("Enter");
    await page.getByRole("dialog").waitFor(visible);
    await press("Escape");
    await focusOn(/^Delete Failed orders$/);
  });
});
