// What differs from person to person, and what everybody may expect of a page, in a real browser against the real binary.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { accessibility, inBothThemes, tooWide, visible } from "./look.mjs";
import { createWorld } from "./world.mjs";

const password = "a long enough password";

/** The scripts of the largest page, as they are sent, charts included and without headers: the inbox, in November 2026. */
const measuredScriptBytes = 231_600;
/** What a page may grow to: by a tenth, and never beyond 240 kB. */
const mostScriptBytes = Math.min(Math.round(measuredScriptBytes * 1.1), 240_000);

describe("people and pages", { timeout: 960_000 }, () => {
  let world;
  let page;
  let rule;
  let message;
  const complaints = [];
  const refused = [];
  const elsewhere = [];

  const listen = (opened) => {
    opened.on("console", (said) => {
      if (said.type() === "error" && !/status of (401|503)/.test(said.text())) complaints.push(said.text());
    });
    opened.on("pageerror", (error) => complaints.push(error.message));
    opened.on("request", (request) => {
      if (new URL(request.url()).host !== new URL(world.url).host) elsewhere.push(request.url());
    });
    opened.on("response", (answer) => {
      if (answer.status() === 403) refused.push(answer.url());
    });
    return opened;
  };
  const post = async (path, data) => {
    const answer = await page.request.post(`${world.url}/api/v1${path}`, { data });
    assert.ok(answer.ok(), `${path}: ${answer.status()} ${await answer.text()}`);
    return answer.json();
  };
  /** A separate browser in which somebody is signed in. */
  const enter = async (role, options = {}) => {
    const context = await world.context(options);
    const signIn = { email: `${role}@example.com`, password };
    const answer = await context.request.post(`${world.url}/api/v1/session`, { data: signIn });
    assert.equal(answer.status(), 200);
    return listen(await context.newPage());
  };

  before(async () => {
    world = await createWorld();
    page = listen(await (await world.context()).newPage());
    await page.goto(world.url);
    await world.signIn(page);
    await page.getByRole("heading", { name: "No rules yet" }).waitFor(visible);
    const webhook = await post("/webhooks", { name: "Receiver", kind: "generic", url: world.receiver });
    const failures = { name: "Failures", fireMode: "PER_EXCHANGE", severity: "CRITICAL", webhookIds: [webhook.id] };
    rule = await post("/rules", failures);
    for (const role of ["viewer", "editor"]) {
      await post("/users", { email: `${role}@example.com`, name: role, role, password });
    }
    await world.fail({ id: "x-1" }, { id: "x-2" }, { id: "x-3" });
    await page.goto(`${world.url}/deliveries?status=delivered`);
    const row = page.getByRole("link", { name: /Receiver · Alert/ }).first();
    await row.getByRole("img", { name: "1 attempt: delivered" }).waitFor(visible);
    message = new URL(await row.getAttribute("href"), world.url).pathname;
  });
  after(async () => {
    await world?.close();
  });

  test("what was not saved is there when the browser is opened again, for its person alone", async () => {
    await page.goto(`${world.url}/rules/new`);
    await page.getByLabel("Name").fill("Half a rule");
    await page.getByText(/^Unsaved changes, kept as a draft in this browser for /).waitFor(visible);
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("button", { name: "Save as draft" }).click();
    await page.getByRole("row", { name: /Receiver/ }).waitFor(visible);
    const kept = await page.context().storageState();

    const again = listen(await (await world.context({ storageState: kept })).newPage());
    await again.goto(`${world.url}/rules`);
    await again.getByRole("link", { name: "Continue new rule" }).click();
    await again
      .getByText(/^Your unsaved changes from/)
      .last()
      .waitFor(visible);
    assert.equal(await again.getByLabel("Name").inputValue(), "Half a rule");

    const other = await enter("editor", { storageState: { ...kept, cookies: [] } });
    await other.goto(`${world.url}/rules/new`);
    await other.getByLabel("Name").waitFor(visible);
    assert.equal(await other.getByLabel("Name").inputValue(), "");

    await again.getByRole("button", { name: "Discard" }).click();
    await again.getByRole("link", { name: "Rules", exact: true }).click();
    await again.getByRole("link", { name: "New rule" }).waitFor(visible);
    await Promise.all([again.context().close(), other.context().close()]);
  });

  test("two tabs of one person keep what each of them has written", async () => {
    const one = await enter("editor");
    const two = listen(await one.context().newPage());
    for (const [tab, name] of [
      [one, "First"],
      [two, "Second"],
    ]) {
      await tab.goto(`${world.url}/rules/new`);
      assert.equal(await tab.getByLabel("Name").inputValue(), "");
      await tab.getByLabel("Name").fill(name);
      await tab.getByText(/^Unsaved changes, kept as a draft in this browser for /).waitFor(visible);
    }
    await one.getByText(/“Second” is open in another tab, last changed/).waitFor(visible);
    assert.deepEqual(await accessibility(one), []);
    await Promise.all([one.reload(), two.reload()]);
    for (const [tab, name] of [
      [one, "First"],
      [two, "Second"],
    ]) {
      await tab
        .getByText(/^Your unsaved changes from/)
        .last()
        .waitFor(visible);
      assert.equal(await tab.getByLabel("Name").inputValue(), name);
    }
    await two.close({ runBeforeUnload: true });
    await one.getByRole("button", { name: "Continue “Second”" }).click();
    await one.getByRole("button", { name: "Continue “First”" }).waitFor(visible);
    assert.equal(await one.getByLabel("Name").inputValue(), "Second");
    await one.context().close();
  });

  test("the sentence, and the way to what is wrong, stay in view", async () => {
    await page.goto(`${world.url}/rules/${rule.id}/edit`);
    await page.getByText("A number of exchanges", { exact: true }).click();
    await page.getByLabel("Threshold", { exact: true }).fill("0");
    const parts = page.getByRole("navigation", { name: "Parts of the rule" });
    await parts.getByRole("button", { name: "Trigger 1 to correct" }).waitFor(visible);
    await parts.getByRole("button", { name: "Review" }).click();
    await page.getByText(/^Whenever some number of exchanges fail within 10 min/).waitFor(visible);
    await page.getByLabel("Threshold", { exact: true }).fill("42");
    await page.getByText("44 exchanges within 10 min", { exact: false }).first().waitFor(visible);
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByRole("button", { name: "Discard changes" }).click();
    await page.getByRole("row", { name: /Failures/ }).waitFor(visible);
  });

  test("a tablet has room for headings and rules, and the focus is never behind the bar at the foot", async () => {
    const context = await world.context({
      viewport: { width: 768, height: 900 },
      storageState: await page.context().storageState(),
    });
    const tablet = listen(await context.newPage());
    await tablet.goto(`${world.url}/inbox?fold=none`);
    const box = (locator) => locator.boundingBox();
    const states = await box(tablet.getByRole("navigation", { name: "State" }));
    const filters = await box(tablet.getByRole("search"));
    assert.ok(filters.y >= states.y + states.height || filters.x >= states.x + states.width, "headings overlap");
    await tablet.goto(`${world.url}/rules`);
    const cell = await box(tablet.getByRole("cell", { name: /^Failures/ }).first());
    assert.ok(cell.width > 300, `a rule has ${cell.width} px`);

    await tablet.setViewportSize({ width: 1280, height: 720 });
    await tablet.goto(`${world.url}/rules/${rule.id}/edit`);
    await tablet.getByLabel("Name", { exact: true }).focus();
    const hidden = () => {
      const { left, top, width, height } = document.activeElement.getBoundingClientRect();
      const above = document.elementFromPoint(left + width / 2, top + height / 2);
      return (
        above?.closest("form [class*=bar]") && !above.closest("form [class*=bar]").contains(document.activeElement)
      );
    };
    for (let stop = 0; stop < 34; stop++) {
      await tablet.keyboard.press("Tab");
      assert.ok(!(await tablet.evaluate(hidden)), `stop ${stop} is behind the bar`);
    }
    await context.close();
  });

  test("a viewer reads every page, and nothing there is refused", async () => {
    const opened = await enter("viewer", { viewport: { width: 360, height: 780 } });
    const forbidden = (whose) => opened.getByRole("heading", { name: `This page is for ${whose}` });
    const pages = {
      "/rules": opened.getByRole("row", { name: /Failures/ }),
      [`/rules/${rule.id}`]: opened.getByRole("img", { name: /per 15 minutes/ }),
      [`/rules/${rule.id}/edit`]: opened.getByText(/Editing requires the editor role/),
      "/rules/new": forbidden("editors"),
      "/webhooks": opened.getByRole("row", { name: /Receiver/ }),
      "/webhooks/new": forbidden("editors"),
      "/deliveries": opened.getByRole("link", { name: /Receiver · Alert/ }).first(),
      [message]: opened.getByText(/^HTTP\/1.1 200/),
      "/system": opened.getByRole("img", { name: /^Alerts per minute, last hour\. Alerts: peak/ }),
      "/users": forbidden("administrators"),
      "/tokens": forbidden("administrators"),
      "/audit": forbidden("administrators"),
    };
    refused.length = 0;
    for (const [path, sign] of Object.entries(pages)) {
      await opened.goto(world.url + path);
      await sign.waitFor(visible);
      assert.deepEqual(await inBothThemes(opened), [], path);
      assert.deepEqual(await opened.evaluate(tooWide), [], path);
    }
    assert.deepEqual(refused, []);
    await opened.context().close();
  });

  test("a page that could not be read says so, and is read when that has passed", async () => {
    const reads = {
      "/rules": "rules",
      "/webhooks": "webhooks",
      "/deliveries": "notifications",
      "/users": "users",
      "/audit": "audit",
    };
    for (const [path, asked] of Object.entries(reads)) {
      await page.route(`**/api/v1/${asked}?*`, (route) => route.fulfill({ status: 503 }));
      await page.goto(world.url + path);
      const again = page.getByRole("alert").getByRole("button", { name: "Try again" });
      await again.waitFor(visible);
      await page.unroute(`**/api/v1/${asked}?*`);
      await again.click();
      await again.waitFor({ state: "detached" });
    }
  });

  test("a screen without anybody shows the wall by a token, and nothing of it stays in the address", async () => {
    const { secret } = await post("/tokens", { name: "screen", role: "viewer" });
    const context = await world.context({ viewport: { width: 3840, height: 2160 } });
    // The answer to a request without a session may not come last.
    await context.route("**/api/v1/session", async (route) => {
      await new Promise((done) => setTimeout(done, 500));
      await route.continue();
    });
    const opened = listen(await context.newPage());
    await opened.goto(`${world.url}/wall#${secret}`);
    await opened
      .getByText(/firing$/)
      .first()
      .waitFor(visible);
    assert.equal(opened.url(), `${world.url}/wall`);
    const { width, size } = await opened.getByText("Live", { exact: true }).evaluate((element) => {
      const fact = element.parentElement;
      return {
        width: Number.parseFloat(getComputedStyle(fact, "::before").width),
        size: Number.parseFloat(getComputedStyle(fact).fontSize),
      };
    });
    assert.ok(width > size / 2, `the dot grows with the text: ${width} of ${size} px`);
    await world.fail(...Array.from({ length: 15 }, (_, at) => ({ id: `wall-${at}`, route: `wall-${at}` })));
    await opened.setViewportSize({ width: 1920, height: 500 });
    await opened.getByText(/^and more issues$/).waitFor(visible);
    const { seen, cut } = await opened.evaluate(() => {
      const list = document.querySelector("main ul");
      const lines = [...list.children].filter((line) => getComputedStyle(line).visibility === "visible");
      return {
        seen: lines.length,
        cut: lines.filter((line) => line.getBoundingClientRect().bottom > list.getBoundingClientRect().bottom + 1)
          .length,
      };
    });
    assert.ok(seen > 0 && seen < 12 && cut === 0, `${seen} lines, of which ${cut} are cut`);
    await context.close();
  });

  test(`the scripts of each page are below ${mostScriptBytes / 1000} kB as they are sent`, async () => {
    const paths = [
      "/inbox",
      "/wall",
      "/rules",
      `/rules/${rule.id}`,
      `/rules/${rule.id}/edit`,
      "/rules/new",
      "/webhooks",
      "/webhooks/new",
      `/webhooks/${rule.webhookIds[0]}`,
      "/deliveries",
      "/system",
      "/account",
      "/users",
      "/audit",
    ];
    for (const path of paths) {
      const context = await world.context({ storageState: await page.context().storageState() });
      const opened = listen(await context.newPage());
      // What the answers contain, compressed, without their headers. The editor of a webhook's body takes the place of a
      // plain field once the page is there.
      const sent = () =>
        opened.evaluate(() =>
          performance
            .getEntriesByType("resource")
            .filter(({ name }) => name.endsWith(".js") && !/BodyEditor-/.test(name))
            .reduce((all, { encodedBodySize }) => all + encodedBodySize, 0),
        );
      await opened.goto(world.url + path);
      await opened.getByText("Live", { exact: true }).waitFor(visible);
      await opened.waitForLoadState("load");
      await opened.waitForFunction(() => document.fonts.status === "loaded");
      // Until nothing has come for half a second: charts and editors come after the page.
      let bytes = await sent();
      for (let before = -1; before !== bytes; bytes = await sent()) {
        before = bytes;
        await opened.waitForTimeout(500);
      }
      if (process.env.TOCSIN_SAY_BYTES) console.log(path, bytes);
      assert.ok(bytes > 50_000 && bytes < mostScriptBytes, `${path}: ${bytes} bytes`);
      await context.close();
    }
  });

  test("the pages complained of nothing and asked no other host", () => {
    assert.deepEqual(complaints, []);
    assert.deepEqual(elsewhere, []);
  });
});
