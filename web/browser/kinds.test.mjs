// Each kind of window rule, written as a new user would, in a real browser against the real binary. Exchanges then
// give it a reason, and a neighbour of the same rule none.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { visible } from "./look.mjs";
import { createStage, rowOf } from "./stage.mjs";

describe("window rules", { timeout: 1_920_000 }, () => {
  let stage;

  before(async () => {
    stage = await createStage();
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  /** Writes a rule for a separate application, and returns both once the rule counts exchanges that end. */
  async function write(page, mode, fill) {
    const application = stage.name("shop");
    const name = `${mode} of ${application}`;
    await page.getByLabel("Name").fill(name);
    const applications = page.locator("input").and(page.getByLabel("Applications", { exact: true }));
    await applications.fill(application);
    await page.keyboard.press("Enter");
    await page.getByText(mode, { exact: true }).click();
    await fill();
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.getByRole("row", { name: new RegExp(name) }).waitFor(visible);
    const { items } = await stage.call("GET", "/rules?limit=200");
    const rule = items.find((one) => one.name === name);
    while (Date.now() <= Date.parse(rule.armedSince)) await new Promise((done) => setTimeout(done, 10));
    return { application, rule };
  }

  /** Waits until exactly one alert of a rule fires, and returns what a person sees of it. */
  async function fires(page, rule, group, what = "Count") {
    let firing = [];
    for (const end = Date.now() + 120_000; firing.length === 0 && Date.now() < end; ) {
      firing = (await stage.call("GET", `/alerts?state=FIRING&ruleId=${rule.id}`)).items;
      await new Promise((done) => setTimeout(done, 200));
    }
    assert.deepEqual(
      firing.map(({ count }) => count.group),
      [group],
    );
    await page.goto(`${stage.world.url}/inbox/${firing[0].id}`);
    await rowOf(page, rule.name).first().waitFor(visible);
    await page.getByRole("heading", { name: `${what} at the last change` }).waitFor(visible);
    return page;
  }

  const field = (page, label) => page.getByLabel(label, { exact: true });
  const countBy = (page, group) => field(page, "Group by").selectOption(group);

  test("a number of failures of one customer", async () => {
    const page = await stage.open("/rules/new");
    const { application, rule } = await write(page, "A number of exchanges", async () => {
      await field(page, "Threshold").fill("3");
      await countBy(page, "Attribute value");
      await page.getByRole("combobox", { name: "Attribute" }).fill("customer");
      await page
        .getByText(/within 10 min with one value of customer/)
        .first()
        .waitFor(visible);
    });
    const failed = (customer, n) => ({
      id: stage.name("x"),
      application,
      route: `route-${n}`,
      attributes: { customer },
    });
    await stage.world.fail(failed("7", 1), failed("7", 2), failed("8", 1), failed("8", 2), failed("7", 3));
    await fires(page, rule, "7");
    await page.getByText("3 / 3 within 10 min").first().waitFor(visible);
    await page.getByText("customer 7", { exact: true }).first().waitFor(visible);
  });

  test("a ratio of what runs through a route", async () => {
    const page = await stage.open("/rules/new");
    const { application, rule } = await write(page, "A failure ratio", async () => {
      await field(page, "Ratio").fill("50");
      await field(page, "Minimum volume").fill("4");
      await countBy(page, "Route");
    });
    const ended = (route, completed) => ({ id: stage.name("x"), application, route, completed });
    const mixed = (route, ...completed) => completed.map((one) => ended(route, one));
    await stage.world.fail(...mixed("tax", true, false, true, false), ...mixed("calm", true, true, true, false));
    await fires(page, rule, "tax", "Value");
    await page.getByText("50% / 50% within 10 min").first().waitFor(visible);
  });

  test("a route that slows down", async () => {
    const page = await stage.open("/rules/new");
    const { application, rule } = await write(page, "Slow exchanges", async () => {
      await field(page, "Minimum volume").fill("3");
      await countBy(page, "Route");
    });
    const took = (route, lasts) => ({ id: stage.name("x"), application, route, completed: true, lasts });
    await stage.world.fail(
      ...[took("render", 2400), took("render", 3100), took("render", 2600)],
      ...[took("quick", 100), took("quick", 1900), took("quick", 200)],
    );
    await fires(page, rule, "render", "Value");
    await page.getByText("p95 3.1 s / 2 s within 10 min").first().waitFor(visible);
  });

  test("a route that falls silent", async () => {
    const page = await stage.open("/rules/new");
    const { application, rule } = await write(page, "Missing exchanges", async () => {
      await field(page, "Threshold").fill("1");
      await field(page, "Unit of Window").selectOption("s");
      await field(page, "Window").fill("20");
      await countBy(page, "Route");
      await page.getByText("A fixed list", { exact: true }).click();
      const list = page.locator("input").and(field(page, "List of routes"));
      for (const route of ["import", "export"]) {
        await list.fill(route);
        await page.keyboard.press("Enter");
      }
    });
    const runs = (route) => stage.world.fail({ id: stage.name("x"), application, route, completed: true });
    await Promise.all([runs("import"), runs("export")]);
    let going = true;
    const alive = (async () => {
      for (; going; await new Promise((done) => setTimeout(done, 500))) await runs("export");
    })();
    try {
      await fires(page, rule, "import");
      await page.getByText("0 of 1 expected within 20 s").first().waitFor(visible);
    } finally {
      going = false;
      await alive;
    }
  });
});
