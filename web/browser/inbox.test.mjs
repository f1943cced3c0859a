// What a person does to alerts, in a real browser against the real binary. Each test has an application and a rule of its own.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { covered, inBothThemes, tooWide, visible } from "./look.mjs";
import { createStage, rowOf, rows, tab } from "./stage.mjs";

describe("the inbox", { timeout: 1_200_000 }, () => {
  let stage;

  before(async () => {
    stage = await createStage();
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  /** How many alerts are in each state. */
  const counts = () => stage.call("GET", "/alerts/counts");
  const of = (word, count) => Array.from({ length: count }, (_, at) => `${word}-${at}`);
  const detailOf = (page) => page.getByRole("article", { name: "Alert" });

  test("the focused row says its exact times, and how long ago that is moves on", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["first"]);
    const page = await stage.open(`/inbox?app=${application}`);
    await rowOf(page, "first").focus();
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Tab");
    const tip = page.getByRole("tooltip");
    await tip.waitFor(visible);
    const first = await tip.locator("p").last().textContent();
    assert.match(first, /^(now|\d+ s ago): \d+ \w+ \d{4}, \d\d:\d\d:\d\d\.\d+ /);
    await page.waitForFunction(
      (before) => document.querySelector("[role=tooltip] p:last-child")?.textContent !== before,
      first,
    );
    const both = await page.evaluate(() => [
      document.querySelector("[role=tooltip] p:last-child").textContent.split(":")[0],
      [...document.querySelectorAll("[data-alert]:focus time")].at(-1).textContent,
    ]);
    assert.equal(both[0], both[1]);
  });

  test("acknowledging by key leaves the others", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["first", "second", "third"]);
    const { firing, acknowledged } = await counts();
    const page = await stage.open(`/inbox?app=${application}`);
    await rowOf(page, "third").waitFor(visible);
    assert.equal(await rows(page).count(), 3);
    await rowOf(page, "second").focus();
    // The page shows the new state before the server has it.
    const stored = page.waitForResponse(/\/alerts\/acknowledge$/);
    await page.keyboard.press("a");
    await rowOf(page, "second").waitFor({ state: "detached" });
    assert.equal((await stored).status(), 200);
    await tab(page, new RegExp(`^Firing\\s*${firing - 1}$`)).waitFor(visible);
    await tab(page, new RegExp(`^Acknowledged\\s*${acknowledged + 1}$`)).waitFor(visible);
    await page.reload();
    await rowOf(page, "third").waitFor(visible);
    assert.equal(await rows(page).count(), 2);
  });

  test("an alert that is opened by its address can be resolved, and stays in view", async () => {
    const { application } = await stage.rule();
    const [alert] = await stage.fail(application, ["second"]);
    await stage.call("POST", `/alerts/${alert.id}/acknowledge`);
    const { resolved } = await counts();
    const page = await stage.open(`/inbox/${alert.id}?state=acknowledged&app=${application}`);
    await page.getByRole("heading", { name: /second/ }).waitFor(visible);
    await page.getByRole("button", { name: /Resolve/ }).click();
    await detailOf(page).getByText("Resolved by").waitFor(visible);
    await tab(page, new RegExp(`^Resolved\\s*${resolved + 1}$`)).waitFor(visible);
    assert.match(page.url(), /state=acknowledged/);
  });

  test("the status line says when Tocsin is gone, and the list catches up when it is back", async () => {
    stage.asked = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/;
    const { application } = await stage.rule();
    await stage.fail(application, ["first", "second"]);
    const page = await stage.open(`/inbox?app=${application}`);
    await rowOf(page, "second").waitFor(visible);
    const status = page.getByRole("region", { name: "Tocsin status" });
    await status.getByText("Live", { exact: true }).waitFor(visible);
    await stage.world.stop();
    await status.getByText(/Reconnecting|Offline/).waitFor(visible);
    assert.equal(await rows(page).count(), 2);
    await stage.world.fail({ id: stage.name("x"), application, route: "meanwhile" });
    await stage.world.start();
    await status.getByText("Live", { exact: true }).waitFor({ state: "visible", timeout: 45_000 });
    await rowOf(page, "meanwhile").waitFor(visible);
  });

  test("a long list is loaded as it is scrolled, and keeps its place when alerts come in above", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, of("many", 133));
    const page = await stage.open(`/inbox?fold=none&app=${application}`);
    await rowOf(page, "many-").first().waitFor(visible);
    await rows(page).first().click();
    await page.keyboard.press("Escape");
    const opened = await rows(page).first().getAttribute("data-alert");
    const scroller = page.getByRole("list", { name: "Alerts" }).locator("..");
    const end = page.getByText("End of the list: 133 rows");
    await scroller.hover();
    for (const until = Date.now() + 30_000; Date.now() < until && !(await end.isVisible()); ) {
      await page.mouse.wheel(0, 4_000);
      await page.waitForFunction(() => new Promise(requestAnimationFrame).then(() => true));
    }
    await end.waitFor(visible);

    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("data-alert"));
    assert.equal(await focused(), opened, "a row keeps the focus while the list is scrolled");
    await page.keyboard.press("j");
    await page.waitForFunction((before) => document.activeElement?.getAttribute("data-alert") !== before, opened);
    const top = await scroller.evaluate((element) => element.scrollTop);
    assert.ok(top > 2_000, `keys go on where one looks, not at ${top} px`);

    await scroller.evaluate((element) => element.scrollTo({ top: 1_510 }));
    const held = () =>
      scroller.evaluate((element) => {
        const top = element.getBoundingClientRect().top;
        const seen = [...element.querySelectorAll("[data-alert]")].find(
          (row) => row.getBoundingClientRect().top >= top,
        );
        return { alert: seen?.dataset.alert, at: Math.round((seen?.getBoundingClientRect().top ?? 0) - top) };
      });
    await page.waitForFunction(() => new Promise(requestAnimationFrame).then(() => true));
    const before = await held();
    await stage.fail(application, ["late-1", "late-2"]);
    const newer = page.getByRole("button", { name: "2 new" });
    await newer.waitFor(visible);
    assert.deepEqual(await held(), before);

    await newer.click();
    await rowOf(page, "late").first().waitFor(visible);
    assert.notEqual(await rows(page).first().getAttribute("data-alert"), opened);
  });

  test("everything that matches is resolved at once, and put back", async () => {
    const { application } = await stage.rule();
    const { application: other } = await stage.rule();
    await stage.fail(application, of("export", 37));
    await stage.fail(other, of("export", 3));
    const { firing } = await counts();
    const page = await stage.open(`/inbox?fold=none&app=${application}`);
    await page.getByRole("checkbox", { name: "Select all matching alerts" }).check();
    await page.getByRole("button", { name: "Resolve 37 alerts" }).click();
    await page.getByText("37 alerts resolved.").waitFor(visible);
    await tab(page, new RegExp(`^Firing\\s*${firing - 37}$`)).waitFor(visible);
    await page.getByRole("heading", { name: "No matching alerts" }).waitFor(visible);

    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("37 alerts restored.").waitFor(visible);
    await tab(page, new RegExp(`^Firing\\s*${firing}$`)).waitFor(visible);
    await rows(page).first().waitFor(visible);
  });

  test("a folded issue is opened, and two of its alerts are acknowledged by key", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, Array(12).fill("export"));
    const page = await stage.open(`/inbox?app=${application}`);
    await page.getByRole("button", { name: /×12/ }).click();
    await rows(page).first().waitFor(visible);
    const { acknowledged } = await counts();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.keyboard.press("Shift+J");
    await page.getByRole("button", { name: "Acknowledge 2 alerts" }).waitFor(visible);
    await page.keyboard.press("a");
    await page.getByText("2 alerts acknowledged.").waitFor(visible);
    await tab(page, new RegExp(`^Acknowledged\\s*${acknowledged + 2}$`)).waitFor(visible);
  });

  test("an alert that is acknowledged by key is put back by key", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, of("export", 3));
    const page = await stage.open(`/inbox?fold=none&app=${application}`);
    await rows(page).first().waitFor(visible);
    assert.equal(await rows(page).count(), 3);
    await rows(page).first().focus();
    const alert = await rows(page).first().getAttribute("data-alert");
    await page.keyboard.press("a");
    await page.getByText(new RegExp(`${application} · export-\\d acknowledged\\.`)).waitFor(visible);
    await page.locator(`[data-alert="${alert}"]`).waitFor({ state: "detached" });
    await page.keyboard.press("z");
    await page.getByText("1 alert restored.").waitFor(visible);
    await page.locator(`[data-alert="${alert}"]`).waitFor(visible);
    assert.equal(await rows(page).count(), 3);
  });

  test("the palette reaches everything, and gives the focus back", async () => {
    const { application, rule } = await stage.rule();
    await stage.fail(application, ["export"]);
    const page = await stage.open(`/inbox?fold=none&app=${application}`);
    await rows(page).first().focus();
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("data-alert"));
    const before = await focused();
    await page.keyboard.press("Control+k");
    const field = page.getByRole("combobox", { name: "Search or run a command" });
    await field.waitFor(visible);
    assert.equal(await field.evaluate((element) => element === document.activeElement), true);
    await page.keyboard.type("export");
    await page
      .getByRole("option", { name: /· export/ })
      .first()
      .waitFor(visible);
    assert.deepEqual(await inBothThemes(page), [], "the palette");
    await page.keyboard.press("Escape");
    await field.waitFor({ state: "detached" });
    assert.equal(await focused(), before);

    await page.keyboard.press("Control+k");
    await page.keyboard.type(rule.name);
    await page.getByRole("option", { name: `${rule.name} rule`, selected: true }).waitFor(visible);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: rule.name }).first().waitFor(visible);
    assert.equal(new URL(page.url()).pathname, `/rules/${rule.id}`);
  });

  test("an alert says how long its exchange took, and that nothing is usual yet", async () => {
    const { application } = await stage.rule();
    const [alert] = await stage.fail(application, ["export"]);
    const page = await stage.open(`/inbox/${alert.id}?app=${application}`);
    await detailOf(page).getByText("250 ms").waitFor(visible);
    await detailOf(page)
      .getByText(/No usual duration yet/)
      .waitFor(visible);
  });

  test("a long name of an attribute leaves the values their room, on a phone too", async () => {
    const { application } = await stage.rule();
    const name = `http.request.header.${"x".repeat(40)}`;
    const [alert] = await stage.fail(application, ["export"], { attributes: { [name]: "4711" } });
    const page = await stage.open(`/inbox/${alert.id}?app=${application}`);
    const detail = detailOf(page);
    await detail.getByText(name, { exact: true }).waitFor(visible);
    for (const width of [360, 768, 1024, 1440, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      await detail.getByText("4711").waitFor(visible);
      const values = await detail.locator("dl dd").evaluateAll((all) =>
        all.map((value) => {
          const { left, right } = value.getBoundingClientRect();
          return { text: value.textContent, width: right - left, right };
        }),
      );
      const hidden = values.filter((value) => value.width < 60 || value.right > width);
      assert.deepEqual(hidden, [], `at ${width}`);
      assert.ok(values.some(({ text }) => text.startsWith("4711")));
    }
  });

  test("on a phone, what can be undone does not cover the bar at the foot", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["first"]);
    const page = await stage.open(`/inbox?app=${application}`, { viewport: { width: 360, height: 780 } });
    await rowOf(page, "first").click();
    await detailOf(page).getByRole("button", { name: "Acknowledge" }).click();
    const undo = page.getByRole("region", { name: "Messages" }).getByRole("button", { name: "Undo" });
    await undo.waitFor(visible);
    const said = await page.getByRole("region", { name: "Messages" }).boundingBox();
    const bar = await page.getByRole("navigation", { name: "Tocsin" }).boundingBox();
    assert.ok(said.y + said.height <= bar.y, `${said.y + said.height} of ${bar.y}`);
    await undo.click();
    await detailOf(page).getByRole("button", { name: "Acknowledge" }).waitFor(visible);
  });

  test("on a phone, the first alert is in the top third of the screen", async () => {
    const { application } = await stage.rule();
    await stage.fail(application, ["export"]);
    const page = await stage.open("/inbox", { viewport: { width: 360, height: 780 } });
    await rows(page).first().waitFor(visible);
    const { y } = await page.locator("[data-alert]").first().boundingBox();
    assert.ok(y <= 780 / 3, `the first row begins at ${y} px`);
  });

  test("a message that was refused is sent again", async () => {
    const { application, webhook } = await stage.rule();
    stage.world.answers.status = 400;
    await stage.fail(application, ["sync"]);
    const page = await stage.open(`/deliveries?status=failed&webhook=${webhook.id}`);
    await page.getByRole("button", { name: /^Send all/ }).waitFor(visible);
    for (const width of [1024, 1280, 1440, 1600, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      assert.deepEqual(await page.evaluate(covered), [], `${width} px`);
      assert.deepEqual(await page.evaluate(tooWide), [], `${width} px`);
    }
    const row = page.getByRole("link", { name: /Receiver .* · Alert/ });
    await row.getByRole("img", { name: "1 attempt: refused" }).waitFor(visible);
    await row.click();
    const message = page.getByRole("article", { name: "Message" });
    await message.getByRole("img", { name: "1 attempt: refused" }).waitFor(visible);
    await message.getByText("HTTP/1.1 400 Bad Request").waitFor(visible);
    stage.world.answers.status = 200;
    const before = stage.receivedOf(application).length;
    await message.getByRole("button", { name: "Send again" }).click();
    await message.getByRole("img", { name: "2 attempts: refused, delivered" }).waitFor(visible);
    await message.getByText("Sent again by").waitFor(visible);
    assert.equal(stage.receivedOf(application).length, before + 1);
  });
});
