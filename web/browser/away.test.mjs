// What a page is worth while Tocsin is away, and how it comes back, in a real browser against the real binary.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { accessibility, idle, tooWide, visible } from "./look.mjs";
import { createStage, rowOf } from "./stage.mjs";

/** What a browser itself reports about a server that is away, and about an answer that the test makes. */
const asked =
  /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|status of 404/;
const back = { state: "visible", timeout: 45_000 };

describe("while Tocsin is away", { timeout: 960_000 }, () => {
  let stage;
  let world;

  /** A page in a separate browser. One that saves data prefetches nothing. */
  const enter = async (savesData = true, path = "/inbox") => {
    stage.asked = asked;
    const opened = await stage.open(path, { prefetches: !savesData });
    await live(opened);
    await opened.evaluate(() => {
      window.neverReloaded = true;
    });
    return opened;
  };
  const status = (opened) => opened.getByRole("region", { name: "Tocsin status" });
  const live = (opened) => status(opened).getByText("Live", { exact: true }).waitFor(back);
  const go = (opened, name) =>
    opened
      .getByRole("navigation", { name: "Tocsin" })
      .getByRole("link", { name: new RegExp(`^${name}`) })
      .click();
  const away = (opened) => opened.getByRole("alert").getByRole("heading", { name: "Tocsin cannot be reached." });
  const kept = (opened) => opened.evaluate(() => window.neverReloaded === true);

  before(async () => {
    stage = await createStage();
    world = stage.world;
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  test("a page that was never opened says so within the frame, and comes by itself when Tocsin is back", async () => {
    const { rule } = await stage.rule();
    const opened = await enter();
    await world.stop();
    await go(opened, "Rules");
    await away(opened).waitFor(visible);
    await opened.getByRole("heading", { name: "Rules", level: 1 }).waitFor(visible);
    await opened.getByRole("navigation", { name: "Tocsin" }).waitFor(visible);
    await status(opened)
      .getByText(/Offline/)
      .waitFor(visible);
    for (const scheme of ["light", "dark"]) {
      for (const viewport of [
        { width: 1440, height: 900 },
        { width: 360, height: 780 },
      ]) {
        await opened.emulateMedia({ colorScheme: scheme });
        await opened.setViewportSize(viewport);
        assert.deepEqual(await accessibility(opened), [], `${scheme} ${viewport.width}`);
        assert.deepEqual(await opened.evaluate(tooWide), [], `${scheme} ${viewport.width}`);
      }
    }
    await opened.setViewportSize({ width: 1440, height: 900 });
    await opened.getByRole("button", { name: "Try again" }).click();
    await away(opened).waitFor(visible);
    await go(opened, "Inbox");
    await opened.getByRole("heading", { name: "Inbox", level: 1 }).waitFor({ ...visible, state: "attached" });
    await go(opened, "System");
    await away(opened).waitFor(visible);
    await opened.keyboard.press("Control+k");
    await opened
      .getByRole("region", { name: "Messages" })
      .getByText(/Tocsin cannot be reached/)
      .waitFor(visible);

    await world.start();
    await opened.getByRole("row", { name: /serves this page/ }).waitFor(back);
    const styled = await opened.evaluate(() =>
      [...document.querySelectorAll('link[rel="stylesheet"]')].map(({ href, sheet }) => [href, sheet !== null]),
    );
    assert.ok(styled.some(([href]) => href.includes("/SystemPage-")));
    assert.deepEqual(
      styled.filter(([, loaded]) => !loaded),
      [],
      "its styles came too",
    );
    // Not that the page was kept: browsers that remember a failed import (Chromium from 148 on) load it again.
    await go(opened, "Rules");
    await opened.getByRole("row", { name: new RegExp(rule.name) }).waitFor(visible);
  });

  test("the pages are there beforehand, unless somebody saves data", async () => {
    const opened = await enter(false);
    const fetched = () =>
      opened.evaluate(() =>
        performance
          .getEntriesByType("resource")
          .map(({ name }) => name)
          .join("\n"),
      );
    await opened.waitForFunction(
      () => performance.getEntriesByType("resource").some(({ name }) => name.includes("/AuditPage-")),
      undefined,
      { timeout: 60_000 },
    );
    assert.match(await fetched(), /NewRulePage-/);
    await world.stop();
    for (const name of ["Rules", "Webhooks", "Deliveries", "System"]) {
      await go(opened, name);
      await opened.getByRole("heading", { name, level: 1 }).waitFor(visible);
    }
    await opened.keyboard.press("Control+k");
    await opened.getByRole("combobox", { name: "Search or run a command" }).waitFor(visible);
    await opened.keyboard.press("Escape");
    await world.start();
    await opened.getByRole("row", { name: /serves this page/ }).waitFor(back);
    assert.ok(await kept(opened));

    const saving = await enter();
    await idle(saving);
    const names = await saving.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
    assert.deepEqual(
      names.filter((name) => /RulesPage-|AuditPage-/.test(name)),
      [],
    );
  });

  test("what is tried meanwhile is refused in words, nothing typed is lost, and each page comes back", async () => {
    const { application, rule, webhook } = await stage.rule();
    await stage.fail(application, ["first"]);
    const opened = await enter(false, `/inbox?app=${application}`);
    const row = rowOf(opened, "first");
    await row.waitFor(visible);
    await opened.waitForFunction(
      () => performance.getEntriesByType("resource").some(({ name }) => name.includes("/AuditPage-")),
      undefined,
      { timeout: 60_000 },
    );
    await go(opened, "Rules");
    await opened.getByRole("row", { name: new RegExp(rule.name) }).waitFor(visible);
    await world.stop();
    await status(opened)
      .getByText(/Offline/)
      .waitFor(visible);

    const said = opened.getByRole("region", { name: "Messages" });
    const remedy = "Tocsin cannot be reached. Check your connection, and whether Tocsin is running.";
    const puts = async (text) => {
      await said.getByText(`${text} ${remedy}`).waitFor(visible);
      await said.getByRole("button", { name: "Dismiss" }).click();
    };
    await opened.getByRole("switch", { name: `${rule.name} is enabled` }).focus();
    await opened.keyboard.press("Space");
    await puts(`“${rule.name}” was not changed.`);
    const visit = (address) =>
      opened.evaluate((to) => {
        history.pushState(null, "", to);
        dispatchEvent(new PopStateEvent("popstate"));
      }, address);
    await visit(`/inbox?app=${application}`);
    await row.focus();
    await opened.keyboard.press("a");
    await said.getByText(remedy).waitFor(visible);
    await said.getByRole("button", { name: "Dismiss" }).click();
    assert.equal(await row.count(), 1);

    // What was read before is shown; of what was not, it is said, and it stays said while the page polls.
    for (const address of ["/users", "/audit", "/deliveries"]) {
      await visit(address);
      await away(opened).waitFor(visible);
    }
    await opened.evaluate(() => {
      window.alertBox = document.querySelector("[role=alert]");
    });
    await opened.getByRole("button", { name: "Try again" }).click();
    await opened.waitForEvent("requestfailed", { timeout: 45_000 });
    assert.ok(await opened.evaluate(() => window.alertBox.isConnected), "the message is not taken away and put back");

    const form = stage.listen(await opened.context().newPage());
    await world.start();
    await opened
      .getByRole("link", { name: new RegExp(`${webhook.name} · Alert`) })
      .first()
      .waitFor(back);
    await live(opened);
    assert.ok(await kept(opened));

    const another = stage.name("Another");
    await form.goto(`${world.url}/webhooks/new`);
    await form.getByLabel("Name").fill(another);
    await form.getByText("Generic", { exact: true }).click();
    await form.getByLabel("URL").fill(world.receiver);
    await world.stop();
    await form.getByRole("button", { name: "Create webhook" }).click();
    await form.getByRole("alert").getByText(remedy).waitFor(visible);
    assert.equal(await form.getByLabel("Name").inputValue(), another);
    await world.start();
    await live(form);
    await form.getByRole("alert").getByText(remedy).waitFor({ state: "hidden", timeout: 45_000 });
    assert.equal(await form.getByLabel("Name").inputValue(), another);
    await form.getByRole("button", { name: "Create webhook" }).click();
    await form.getByRole("row", { name: new RegExp(another) }).waitFor(visible);

    // What a preview said before the outage is not what there is after it.
    await go(form, "Rules");
    await form.getByRole("link", { name: rule.name, exact: true }).click();
    await form.getByRole("link", { name: "Edit", exact: true }).click();
    await form.getByText(/would have raised 1 alert:/).waitFor(visible);
    await world.stop();
    await status(form)
      .getByText(/Offline/)
      .waitFor(visible);
    await world.fail({ id: stage.name("x"), application, route: "second" });
    await world.start();
    await form.getByText(/would have raised 2 alerts:/).waitFor(back);
  });

  test("after an update an old page is loaded again at once, and not for ever", async () => {
    const { rule } = await stage.rule();
    const opened = await enter();
    const loads = [];
    opened.on("load", () => loads.push(opened.url()));
    // The other version: it has other files, and its first page names them.
    await opened.route("**/assets/RulesPage-*.js", (route) => route.fulfill({ status: 404, body: "" }));
    await opened.route(`${world.url}/`, async (route) => {
      const html = await (await route.fetch()).text();
      await route.fulfill({ contentType: "text/html", body: html.replace(/index-[^"]*\.js/, "index-other.js") });
    });
    await go(opened, "Rules");
    const updated = opened.getByRole("alert").getByRole("heading", { name: "Tocsin has been updated." });
    await opened.waitForFunction(() => window.neverReloaded === undefined);
    await updated.waitFor(visible);
    await opened.getByRole("navigation", { name: "Tocsin" }).waitFor(visible);
    assert.deepEqual(loads, [`${world.url}/rules`], "once, where it did not help");
    const reloaded = opened.waitForEvent("load", { timeout: 45_000 });
    await opened.getByRole("button", { name: "Reload" }).click();
    await reloaded;
    await updated.waitFor(visible);
    // The update is complete. Browsers that do not remember a failed import need no reload.
    await opened.unroute("**/assets/RulesPage-*.js");
    await opened.reload();
    await opened.getByRole("row", { name: new RegExp(rule.name) }).waitFor(visible);
  });
});
