// What a person does to many alerts at once, and to a message that was refused, in a real browser against the real binary.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { accessibility, visible } from "./look.mjs";
import { createWorld } from "./world.mjs";

describe("many alerts, and a message that was refused", { timeout: 180_000 }, () => {
  let world;
  let page;
  const complaints = [];

  const rows = () => page.getByRole("list", { name: "Alerts" }).getByRole("link");
  const tab = (name) => page.getByRole("navigation", { name: "State" }).getByRole("link", { name });
  const post = async (path, data) => {
    const answer = await page.request.post(`${world.url}/api/v1${path}`, { data });
    assert.ok(answer.ok(), `${path}: ${answer.status()} ${await answer.text()}`);
    return answer.json();
  };

  before(async () => {
    world = await createWorld();
    page = await world.browser.newPage({ viewport: { width: 1440, height: 900 } });
    page.on("console", (message) => {
      if (message.type() === "error" && !/status of 401/.test(message.text())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(world.url);
    await world.signIn(page);
    await page.getByRole("heading", { name: "No rules yet" }).waitFor(visible);
    const webhook = await post("/webhooks", { name: "Receiver", kind: "generic", url: world.receiver });
    const rule = { name: "Failures", fireMode: "PER_EXCHANGE", severity: "CRITICAL", webhookIds: [webhook.id] };
    await post("/rules", rule);
  });
  after(async () => {
    await world?.close();
  });

  test("everything that matches is resolved at once, and put back", async () => {
    const of = (application, count) =>
      Array.from({ length: count }, (_, at) => ({ id: `${application}-${at}`, application, route: "export" }));
    await world.fail(...of("billing", 37), ...of("orders", 3));
    await tab(/^Firing\s*40$/).waitFor(visible);
    await page.goto(`${world.url}/inbox?fold=none&app=billing`);
    await page.getByRole("checkbox", { name: "Select all matching alerts" }).check();
    await page.getByRole("button", { name: "Resolve 37 alerts" }).click();
    await page.getByText("37 alerts resolved.").waitFor(visible);
    await tab(/^Firing\s*3$/).waitFor(visible);
    await page.getByRole("heading", { name: "No matching alerts" }).waitFor(visible);

    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("37 alerts restored.").waitFor(visible);
    await tab(/^Firing\s*40$/).waitFor(visible);
    await rows().first().waitFor(visible);
  });

  test("a folded group is opened, and acknowledged by key", async () => {
    await page.goto(`${world.url}/inbox?fold=error`);
    const group = page.getByRole("button", { name: /×40/ });
    await group.click();
    await rows().first().waitFor(visible);
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.keyboard.press("Shift+J");
    await page.getByRole("button", { name: "Acknowledge 2 alerts" }).waitFor(visible);
    await page.keyboard.press("a");
    await page.getByText("2 alerts acknowledged.").waitFor(visible);
    await tab(/^Acknowledged\s*2$/).waitFor(visible);
  });

  test("one that is acknowledged by key is put back by key", async () => {
    await page.goto(`${world.url}/inbox?fold=none&app=orders`);
    await rows().first().waitFor(visible);
    const before = await rows().count();
    await rows().first().focus();
    const alert = await rows().first().getAttribute("data-alert");
    await page.keyboard.press("a");
    await page.getByText("orders · export acknowledged.").waitFor(visible);
    await page.locator(`[data-alert="${alert}"]`).waitFor({ state: "detached" });
    await page.keyboard.press("z");
    await page.getByText("1 alert restored.").waitFor(visible);
    await page.locator(`[data-alert="${alert}"]`).waitFor(visible);
    assert.equal(await rows().count(), before);
  });

  test("the palette reaches everything, and gives the focus back", async () => {
    await page.goto(`${world.url}/inbox?fold=none`);
    await rows().first().focus();
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("data-alert"));
    const before = await focused();
    await page.keyboard.press("Control+k");
    const field = page.getByRole("combobox", { name: "Search or run a command" });
    await field.waitFor(visible);
    assert.equal(await field.evaluate((element) => element === document.activeElement), true);
    await page.keyboard.type("export");
    await page
      .getByRole("option", { name: /billing · export|orders · export/ })
      .first()
      .waitFor(visible);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await accessibility(page), [], `the palette in ${colorScheme}`);
    }
    await page.emulateMedia({ colorScheme: null });
    await page.keyboard.press("Escape");
    await field.waitFor({ state: "detached" });
    assert.equal(await focused(), before);

    await page.keyboard.press("Control+k");
    await page.keyboard.type("failures");
    await page.getByRole("option", { name: "Failures rule", selected: true }).waitFor(visible);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Failures" }).first().waitFor(visible);
    assert.match(page.url(), /\/rules\/[0-9a-f-]+$/);
  });

  test("an alert says how long its exchange took, and that nothing is usual yet", async () => {
    await page.goto(`${world.url}/inbox?fold=none`);
    await rows().first().click();
    const detail = page.getByRole("article", { name: "Alert" });
    await detail.getByText("250 ms").waitFor(visible);
    await detail.getByText(/No usual duration yet/).waitFor(visible);
  });

  test("a long name of an attribute leaves the values their room, on a phone too", async () => {
    const name = `http.request.header.${"x".repeat(40)}`;
    await world.fail({ id: "named", application: "named", route: "export", attributes: { [name]: "4711" } });
    await page.goto(`${world.url}/inbox?fold=none&app=named`);
    await rows().first().click();
    const detail = page.getByRole("article", { name: "Alert" });
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
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  test("a message that was refused is sent again", async () => {
    world.answers.status = 400;
    await world.fail({ id: "refused", application: "crm", route: "sync" });
    await page.goto(`${world.url}/deliveries?status=failed`);
    const row = page.getByRole("link", { name: /Receiver · Alert/ });
    await row.getByRole("img", { name: "1 attempt: rejected" }).waitFor(visible);
    await row.click();
    const message = page.getByRole("article", { name: "Message" });
    await message.getByRole("img", { name: "1 attempt: rejected" }).waitFor(visible);
    await message.getByText("HTTP/1.1 400 Bad Request").waitFor(visible);
    world.answers.status = 200;
    const before = world.received.length;
    await message.getByRole("button", { name: "Retry" }).click();
    await message.getByRole("img", { name: "2 attempts: rejected, delivered" }).waitFor(visible);
    await message.getByText("Retried by").waitFor(visible);
    assert.equal(world.received.length, before + 1);
  });

  test("the pages complained of nothing", () => {
    assert.deepEqual(complaints, []);
  });
});
