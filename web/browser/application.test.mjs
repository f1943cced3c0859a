// What a person does, in a real browser, against the real binary, Postgres and ClickHouse. One story: each part stands
// on what the parts before it have left.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { accessibility, tooWide, visible } from "./look.mjs";
import { createWorld } from "./world.mjs";

/** A browser reports each answer of 4xx and each broken connection by itself; these are asked for. */
const asked =
  /Failed to load resource: the server responded with a status of 400|status of 401|status of 412|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/;

describe("the application", { timeout: 420_000 }, () => {
  let world;
  let page;
  const complaints = [];
  const elsewhere = [];

  const listen = (opened) => {
    opened.on("console", (message) => {
      if (message.type() === "error" && !asked.test(message.text())) complaints.push(message.text());
    });
    opened.on("pageerror", (error) => complaints.push(error.message));
    opened.on("request", (request) => {
      if (new URL(request.url()).host !== new URL(world.url).host) elsewhere.push(request.url());
    });
    return opened;
  };
  const rows = (opened = page) => opened.getByRole("list", { name: "Alerts" }).getByRole("link");
  const rowOf = (route) => rows().filter({ hasText: route });
  const tab = (name) => page.getByRole("navigation", { name: "State" }).getByRole("link", { name });

  before(async () => {
    world = await createWorld();
    page = listen(await world.browser.newPage({ viewport: { width: 1440, height: 900 } }));
    await page.goto(world.url);
  });
  after(async () => {
    await world?.close();
  });

  test("who is not signed in is asked to, and comes to where one wanted to go", async () => {
    await page.goto(`${world.url}/webhooks`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor(visible);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      assert.deepEqual(await accessibility(page), [], `sign-in in ${scheme}`);
    }
    await page.emulateMedia({ colorScheme: null });
    await world.signIn(page);
    await page.getByRole("link", { name: "Create the first webhook" }).waitFor(visible);
    const [cookie] = await page.context().cookies();
    assert.ok(cookie.httpOnly && cookie.sameSite === "Lax", "the cookie is for the server alone");
    await page.getByRole("link", { name: "Inbox" }).click();
  });

  test("a new installation says what to do first", async () => {
    await page.getByRole("heading", { name: "No rules yet" }).waitFor(visible);
    await page.getByRole("region", { name: "State of Tocsin" }).getByText("Live", { exact: true }).waitFor(visible);
  });

  test("a webhook is made", async () => {
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("link", { name: "Create the first webhook" }).click();
    await page.getByLabel("Name").fill("Receiver");
    await page.getByText("Generic", { exact: true }).click();
    await page.getByLabel("URL").fill("ftp://example.com");
    await page.getByRole("button", { name: "Create the webhook" }).click();
    const url = page.getByLabel("URL");
    await page.locator('input[type="url"][aria-invalid="true"]').waitFor(visible);
    await url.fill(world.receiver);
    await page.getByRole("button", { name: "Create the webhook" }).click();
    await page.getByRole("row", { name: /Receiver/ }).waitFor(visible);
  });

  test("a refused rule shows the API's words beside the field, and is made when they are heeded", async () => {
    await page.getByRole("link", { name: "Rules" }).click();
    await page.getByRole("link", { name: "Create the first rule" }).click();
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByText("Must not be empty", { exact: true }).waitFor(visible);
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-invalid")), "true");

    await page.getByLabel("Name").fill("Failed orders");
    const refused = page.waitForResponse((answer) => answer.status() === 400);
    const expression = page.getByLabel("Error message matches", { exact: true });
    await expression.fill("(");
    const { errors } = await (await refused).json();
    const message = errors.find((error) => error.field === "definition.filter.errorMessageMatches").message;
    await page.getByText(message, { exact: true }).waitFor(visible);
    await expression.fill("");
    await page
      .locator("input")
      .and(page.getByLabel("Applications", { exact: true }))
      .fill("orders");
    await page.keyboard.press("Enter");
    await page.getByLabel("Receiver").check();
    await page.getByText("Whenever an exchange of orders fails, tell Receiver once.").waitFor(visible);
    await page
      .getByText(/would have raised no alert/)
      .last()
      .waitFor(visible);
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByRole("row", { name: /Failed orders/ }).waitFor(visible);
    await page
      .getByText(/behind$/)
      .first()
      .waitFor(visible);
  });

  test("a failure appears by itself, and its message is delivered once", async () => {
    await page.getByRole("link", { name: "Inbox" }).click();
    await page.getByRole("heading", { name: "Nothing is firing" }).waitFor(visible);
    await page.evaluate(() => {
      window.neverReloaded = true;
    });
    await world.fail({ id: "x-1", route: "first" }, { id: "x-2", application: "billing", route: "not-asked-for" });
    await rowOf("first").waitFor(visible);
    assert.equal(await rows().count(), 1);
    assert.equal(await page.evaluate(() => window.neverReloaded), true);

    await rowOf("first").click();
    const detail = page.getByRole("article", { name: "Alert" });
    await detail.getByText("ErpClient.post").waitFor(visible);
    await detail.getByText("Müller & Söhne").waitFor(visible);
    await detail.getByText("Delivered").waitFor(visible);
    assert.equal(world.received.length, 1);
    await page.keyboard.press("Escape");
  });

  test("the row that has the focus tells its exact times, and how long ago that is moves on", async () => {
    await rowOf("first").focus();
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Tab");
    const tip = page.getByRole("tooltip");
    await tip.waitFor(visible);
    const told = () => tip.locator("p").last().textContent();
    const first = await told();
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
    await world.fail({ id: "x-3", route: "second" }, { id: "x-4", route: "third" });
    await rowOf("third").waitFor(visible);
    assert.equal(await rows().count(), 3);
    await rowOf("second").focus();
    await page.keyboard.press("a");
    await rowOf("second").waitFor({ state: "detached" });
    await tab(/^Firing\s*2$/).waitFor(visible);
    await tab(/^Acknowledged\s*1$/).waitFor(visible);
    await page.reload();
    await rowOf("third").waitFor(visible);
    assert.equal(await rows().count(), 2);
  });

  test("an alert that is opened by its address can be resolved, and stays in view", async () => {
    await tab("Acknowledged").click();
    await rowOf("second").click();
    await page.getByRole("heading", { name: /second/ }).waitFor(visible);
    const address = page.url();
    await page.goto("about:blank");
    await page.goto(address);
    await page.getByRole("button", { name: /Resolve/ }).click();
    await page.getByRole("article", { name: "Alert" }).getByText("Resolved by").waitFor(visible);
    await tab(/^Resolved\s*1$/).waitFor(visible);
    assert.match(page.url(), /state=acknowledged/);
  });

  test("the line of status tells when Tocsin is gone, and catches up when it is back", async () => {
    await tab("Firing").click();
    const status = page.getByRole("region", { name: "State of Tocsin" });
    await world.stop();
    await status.getByText(/Reconnecting|Offline/).waitFor(visible);
    assert.equal(await rows().count(), 2);
    await world.fail({ id: "x-5", route: "meanwhile" });
    await world.start();
    await status.getByText("Live", { exact: true }).waitFor({ state: "visible", timeout: 45_000 });
    await rowOf("meanwhile").waitFor(visible);
  });

  test("a long list is loaded as it is scrolled, and keeps its place when alerts come in above", async () => {
    const many = Array.from({ length: 130 }, (_, index) => ({ id: `many-${index}`, route: `many-${index}` }));
    await world.fail(...many);
    await tab(/^Firing\s*133$/).waitFor(visible);
    await page.goto(`${world.url}/inbox?fold=none`);
    await rowOf("many-").first().waitFor(visible);
    await rows().first().click();
    await page.keyboard.press("Escape");
    const opened = await rows().first().getAttribute("data-alert");
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
    await world.fail({ id: "late-1", route: "late" }, { id: "late-2", route: "late" });
    const newer = page.getByRole("button", { name: "2 new" });
    await newer.waitFor(visible);
    assert.deepEqual(await held(), before);

    await newer.click();
    await rowOf("late").first().waitFor(visible);
    assert.notEqual(await rows().first().getAttribute("data-alert"), opened);
  });

  test("a rule is edited beside what it would have raised, and its message is about a real exchange", async () => {
    await page.getByRole("link", { name: "Rules" }).click();
    await page.getByRole("link", { name: "Failed orders", exact: true }).click();
    await page.getByText("Whenever an exchange of orders fails, tell Receiver once.").waitFor(visible);
    await page.getByRole("img", { name: /^\d+ alerts, by quarter of an hour/ }).waitFor(visible);
    await page.getByText(/created the rule/).waitFor(visible);
    await page.getByRole("link", { name: "Edit", exact: true }).click();
    await page
      .getByText(/this would have raised 13\d alerts: 13\d messages/)
      .last()
      .waitFor(visible);
    const preview = page.getByRole("complementary", { name: "Preview" });
    assert.match(await preview.getByLabel("About").locator("option:checked").textContent(), /orders · late/);
    await page.getByLabel("Title", { exact: true }).fill("");
    await page.getByLabel("Title", { exact: true }).pressSequentially("Order lost: {{rou");
    await page.getByRole("option", { name: /exchange\.route/ }).waitFor(visible);
    await page.keyboard.press("Enter");
    await preview.getByText(/Order lost: late/).waitFor(visible);
    await page.reload();
    await page
      .getByText(/^Restored your unsaved changes from/)
      .last()
      .waitFor(visible);
    assert.equal(await page.getByLabel("Title", { exact: true }).inputValue(), "Order lost: {{exchange.route}}");
    await page.getByRole("button", { name: "Save the rule" }).click();
    await page.getByText("“Failed orders” was saved.").waitFor(visible);
    const before = world.received.length;
    await page.getByRole("button", { name: "Send a test message" }).click();
    await page.getByText(/Delivered to Receiver in/).waitFor(visible);
    assert.equal(world.received.length, before + 1);
  });

  test("two people who edit a rule choose what stands", async () => {
    const context = await world.browser.newContext({ storageState: await page.context().storageState() });
    const other = listen(await context.newPage());
    await other.goto(page.url());
    await other.getByLabel("Name").fill("Failed orders of ours");
    await page.getByLabel("Error message contains", { exact: true }).fill("ERP");
    await page.getByRole("button", { name: "Save the rule" }).click();
    await page.getByText(/” was saved\./).waitFor(visible);
    await other.getByRole("button", { name: "Save the rule" }).click();
    const dialog = other.getByRole("dialog", { name: "Somebody else has changed this rule" });
    await dialog.waitFor(visible);
    for (const scheme of ["light", "dark"]) {
      await other.emulateMedia({ colorScheme: scheme });
      assert.deepEqual(await accessibility(other), [], `the conflict in ${scheme}`);
    }
    await dialog.getByRole("button", { name: "Use these" }).click();
    assert.equal(await other.getByLabel("Error message contains", { exact: true }).inputValue(), "ERP");
    await other.getByLabel("Name").fill("Failed orders");
    await other.getByLabel("Error message contains", { exact: true }).fill("");
    await other.getByRole("button", { name: "Save the rule" }).click();
    await other.getByText(/” was saved\./).waitFor(visible);
    await context.close();
  });

  test("a counting rule was created, disabled and enabled in the list", async () => {
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByRole("link", { name: "New rule" }).click();
    await page.getByLabel("Name").fill("Many failures");
    await page.getByText("A number of exchanges", { exact: true }).click();
    await page.getByLabel("Threshold").fill("1000");
    await page.getByLabel("Count", { exact: true }).selectOption("Per route");
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByRole("row", { name: /Many failures/ }).waitFor(visible);
    const enabled = page.getByRole("switch", { name: "Many failures is enabled" });
    await enabled.focus();
    await page.keyboard.press("Space");
    await page.getByRole("row", { name: /Many failures.*Disabled/ }).waitFor(visible);
    await page.getByRole("button", { name: "Delete Many failures" }).click();
    await page.getByText(/Its open alerts stay/).waitFor(visible);
    await page.getByRole("button", { name: "Delete the rule" }).click();
    await page.getByRole("row", { name: /Many failures/ }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Inbox" }).click();
  });

  for (const scheme of ["light", "dark"]) {
    for (const [device, viewport] of Object.entries({
      desk: { width: 1440, height: 900 },
      phone: { width: 360, height: 780 },
    })) {
      test(`every page can be used by everybody: ${scheme}, ${device}`, async () => {
        const context = await world.browser.newContext({
          viewport,
          colorScheme: scheme,
          storageState: await page.context().storageState(),
        });
        const opened = listen(await context.newPage());
        const alert = new URL(await rowOf("many-").first().getAttribute("href"), world.url).pathname;
        await opened.goto(`${world.url}/rules`);
        const rule = await opened.getByRole("link", { name: "Failed orders", exact: true }).getAttribute("href");
        await opened.goto(`${world.url}${alert}`);
        const issue = await opened.getByRole("link", { name: "Open the issue" }).getAttribute("href");
        const pages = {
          "/inbox": rows(opened).first(),
          [alert]: opened.getByText("ErpClient.post"),
          "/inbox?q=nothing": opened.getByRole("heading", { name: "No matching alerts" }),
          "/inbox?fold=error": opened.getByRole("button", { name: /×/ }).first(),
          "/deliveries": opened.getByRole("link", { name: /Receiver · Alert/ }).first(),
          "/system": opened.getByRole("row", { name: /answers this page/ }),
          "/wall": opened.getByText(/firing$/).first(),
          "/rules": opened.getByRole("row", { name: /Failed orders/ }),
          "/rules/new": opened.getByLabel("Receiver"),
          [rule]: opened.getByRole("img", { name: /by quarter of an hour/ }),
          [`${rule}/edit`]: opened.getByText(/this would have raised/).first(),
          [issue]: opened.getByRole("img", { name: /^Alerts per hour/ }),
          "/webhooks": opened.getByRole("row", { name: /Receiver/ }),
          "/webhooks/new": opened.getByRole("button", { name: "Create the webhook" }),
          "/account": opened.getByText("Administrator", { exact: true }),
          "/users": opened.getByRole("row", { name: /ada@example.com/ }),
          "/tokens": opened.getByRole("heading", { name: "No API tokens yet" }),
          "/audit": opened.getByText(/created webhook/),
          "/no/such": opened.getByRole("heading", { name: "Page not found" }),
        };
        const { items } = await (await opened.request.get(`${world.url}/api/v1/notifications?limit=1`)).json();
        pages[`/deliveries/${items[0].id}`] = opened.getByText(/^HTTP\/1.1 200/);
        pages[`/webhooks/${items[0].webhookId}`] = opened.getByRole("button", { name: "Save the webhook" });
        for (const [path, sign] of Object.entries(pages)) {
          const where = `${path} in ${scheme} on a ${device}`;
          await opened.goto(world.url + path);
          await sign.waitFor(visible);
          await opened.getByText("Live", { exact: true }).waitFor(visible);
          assert.deepEqual(await accessibility(opened), [], where);
          assert.deepEqual(await opened.evaluate(tooWide), [], where);
        }
        await context.close();
      });
    }
  }

  test("the pages that tell things together can be used in forced colours, and on a wall", async () => {
    const context = await world.browser.newContext({
      viewport: { width: 3840, height: 2160 },
      forcedColors: "active",
      storageState: await page.context().storageState(),
    });
    const opened = listen(await context.newPage());
    const { items } = await (await opened.request.get(`${world.url}/api/v1/rules`)).json();
    const groups = await (await opened.request.get(`${world.url}/api/v1/alerts/groups?by=issue`)).json();
    const { application, route, signature } = groups.items.find((group) => group.signature);
    const issue = new URLSearchParams({ app: application, route, error: signature });
    for (const [path, chart] of [
      [`/rules/${items[0].id}`, /by quarter of an hour/],
      [`/issue?${issue}`, /^Alerts per hour/],
      ["/system", /^Evaluation lag/],
      [`/webhooks/${items[0].webhookIds[0]}`, /^Attempts per hour/],
    ]) {
      await opened.goto(world.url + path);
      const drawn = opened.getByRole("img", { name: chart });
      await drawn.waitFor(visible);
      await drawn.focus();
      await opened.keyboard.press("End");
      await opened
        .getByText(/\d\d:\d\d · /)
        .first()
        .waitFor(visible);
      const found = await accessibility(opened);
      // Forced colours are the system's, which is why nothing is said of their contrast.
      assert.deepEqual(
        found.filter((one) => !/contrast/.test(one)),
        [],
        path,
      );
      assert.deepEqual(await opened.evaluate(tooWide), [], path);
    }
    await context.close();
  });

  test("a wide screen is used to its edge, and a form's lines end where its fields do", async () => {
    const context = await world.browser.newContext({ storageState: await page.context().storageState() });
    const opened = listen(await context.newPage());
    const alert = new URL(await rowOf("many-").first().getAttribute("href"), world.url).pathname;
    const boxOf = async (locator) => {
      await locator.waitFor(visible);
      return locator.boundingBox();
    };
    for (const width of [1920, 2560, 3840]) {
      await opened.setViewportSize({ width, height: 1080 });
      const reaching = {
        "/inbox": rows(opened).first(),
        "/deliveries": opened.getByRole("link", { name: /Receiver · Alert/ }).first(),
        "/rules": opened.getByRole("row", { name: /Failed orders/ }),
        "/webhooks": opened.getByRole("row", { name: /Receiver/ }),
        "/system": opened.getByRole("row", { name: /answers this page/ }),
        "/audit": opened.getByRole("row", { name: /created webhook/ }),
      };
      for (const [path, wide] of Object.entries(reaching)) {
        await opened.goto(world.url + path);
        const { x, width: w } = await boxOf(wide);
        assert.equal(Math.round(x + w), width, `${path} at ${width}`);
        assert.deepEqual(await opened.evaluate(tooWide), [], `${path} at ${width}`);
      }
      await opened.goto(world.url + alert);
      const error = await boxOf(opened.getByRole("heading", { name: "Error" }));
      const timeline = await boxOf(opened.getByRole("heading", { name: "Timeline" }));
      assert.equal(timeline.y === error.y, width > 1920, `beside each other at ${width}, or one below the other`);
      await opened.goto(`${world.url}/rules/new`);
      const raised = await boxOf(opened.getByRole("heading", { name: "What it would have raised" }));
      const message = await boxOf(opened.getByRole("heading", { name: "Message preview" }));
      assert.equal(message.x > raised.x, width > 1920, `the message at ${width}`);
    }
    for (const width of [360, 1280]) {
      await opened.setViewportSize({ width, height: 800 });
      await opened.goto(`${world.url}/webhooks`);
      await opened.getByRole("link", { name: "Receiver", exact: true }).click();
      const panel = await boxOf(opened.getByRole("region", { name: "State", exact: true }));
      const name = await boxOf(opened.getByLabel("Name"));
      assert.deepEqual([panel.x, panel.width], [name.x, name.width], `the panel at ${width}`);
    }
    await opened.setViewportSize({ width: 360, height: 800 });
    await opened.goto(`${world.url}/inbox?fold=none`);
    await opened.getByRole("checkbox", { name: "Select all matching alerts" }).check();
    const many = await boxOf(opened.getByText(/^\d+ selected$/));
    const none = await boxOf(opened.getByRole("button", { name: "Clear the selection" }));
    const act = await boxOf(opened.getByRole("button", { name: /^Acknowledge \d+/ }));
    assert.ok(
      many.y < none.y + none.height && none.y < many.y + many.height,
      "what ends a selection stands beside its number",
    );
    assert.ok(act.y >= none.y + none.height, "and the actions below");
    await opened.goto(`${world.url}/rules`);
    const card = opened.getByRole("row", { name: /Failed orders/ });
    const middle = async (locator) => {
      const { y, height } = await boxOf(locator);
      return y + height / 2;
    };
    const [severity, firing, raised] = await Promise.all(
      [card.getByText("Critical"), card.getByRole("link", { name: /firing/ }), card.getByText(/^\d+ raised$/)].map(
        middle,
      ),
    );
    assert.ok(Math.max(severity, firing, raised) - Math.min(severity, firing, raised) < 2, "one line on a card");
    const enabled = await boxOf(card.getByRole("switch"));
    const remove = await boxOf(card.getByRole("button", { name: "Delete Failed orders" }));
    assert.ok(enabled.x > 180 && remove.x > enabled.x, "what one does with a rule stands together, at the right");
    await context.close();
  });

  test("a webhook that a rule needs stays, and the page names the rule", async () => {
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("button", { name: "Delete Receiver" }).click();
    const conflict = page.waitForResponse((answer) => answer.status() === 409);
    await page.getByRole("button", { name: "Delete the webhook" }).click();
    await conflict;
    await page
      .getByRole("dialog")
      .getByText(/Failed orders/)
      .waitFor(visible);
    await page.getByRole("button", { name: "Cancel" }).click();
    complaints.splice(0, complaints.length, ...complaints.filter((text) => !/status of 409/.test(text)));
  });

  test("a rule is deleted, and its alerts stay", async () => {
    await page.getByRole("link", { name: "Rules" }).click();
    await page.getByRole("button", { name: "Delete Failed orders" }).click();
    await page.getByRole("button", { name: "Delete the rule" }).click();
    await page.getByRole("heading", { name: "No rules yet" }).waitFor(visible);
    await page.getByRole("link", { name: "Inbox" }).click();
    await rowOf("many-").first().waitFor(visible);
  });

  test("the pages complained of nothing and asked no other host", () => {
    assert.deepEqual(complaints, []);
    assert.deepEqual(elsewhere, []);
  });
});
