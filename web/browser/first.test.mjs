// The first minutes with an empty installation, in a real browser against the real binary.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inBothThemes, visible } from "./look.mjs";
import { rowOf, rows } from "./stage.mjs";
import { createWorld } from "./world.mjs";

describe("an empty installation", { timeout: 720_000 }, () => {
  let world;
  const complaints = [];

  const enter = async (path) => {
    const context = await world.context();
    const page = await context.newPage();
    page.on("console", (said) => {
      if (said.type() === "error" && !/status of 40[01]/.test(said.text())) complaints.push(said.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(world.url + path);
    return page;
  };

  before(async () => {
    world = await createWorld();
  });
  after(async () => {
    await world?.close();
  });

  test("somebody who is not signed in is asked to, and comes to the page that they wanted", async () => {
    const page = await enter("/system");
    await page.getByRole("heading", { name: "Sign in" }).waitFor(visible);
    assert.deepEqual(await inBothThemes(page), [], "sign-in");
    await world.signIn(page);
    await page.getByRole("row", { name: /serves this page/ }).waitFor(visible);
    const [cookie] = await page.context().cookies();
    assert.ok(cookie.httpOnly && cookie.sameSite === "Lax", "the cookie is for the server alone");
    await page.context().close();
    assert.deepEqual(complaints.splice(0), []);
  });

  test("from nothing to the first message: each page says what to do next", async () => {
    const page = await enter("/");
    await world.signIn(page);
    await page.getByRole("heading", { name: "No rules yet" }).waitFor(visible);
    await page.getByRole("region", { name: "Tocsin status" }).getByText("Live", { exact: true }).waitFor(visible);

    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("link", { name: "Create your first webhook" }).click();
    await page.getByLabel("Name").fill("Receiver");
    await page.getByText("Generic", { exact: true }).click();
    await page.getByLabel("URL").fill("ftp://example.com");
    await page.getByRole("button", { name: "Create webhook" }).click();
    await page.locator('input[type="url"][aria-invalid="true"]').waitFor(visible);
    await page.getByLabel("URL").fill(world.receiver);
    await page.getByRole("button", { name: "Create webhook" }).click();
    await page.getByRole("row", { name: /Receiver/ }).waitFor(visible);

    await page.getByRole("link", { name: "Rules" }).click();
    await page.getByRole("link", { name: "Create your first rule" }).click();
    await page.getByRole("button", { name: "Create rule" }).click();
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
    await page.getByText("Whenever an exchange of orders fails, notify Receiver once.").waitFor(visible);
    await page
      .getByText(/would have raised no alerts/)
      .last()
      .waitFor(visible);
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.getByRole("row", { name: /Failed orders/ }).waitFor(visible);
    await page
      .getByText(/behind$/)
      .first()
      .waitFor(visible);

    await page.getByRole("link", { name: "Inbox" }).click();
    await page.getByRole("heading", { name: "Nothing is firing" }).waitFor(visible);
    await page.evaluate(() => {
      window.neverReloaded = true;
    });
    await world.fail({ id: "x-1", route: "first" }, { id: "x-2", application: "billing", route: "not-asked-for" });
    await rowOf(page, "first").waitFor(visible);
    assert.equal(await rows(page).count(), 1);
    assert.equal(await page.evaluate(() => window.neverReloaded), true);
    await rowOf(page, "first").click();
    const detail = page.getByRole("article", { name: "Alert" });
    await detail.getByText("ErpClient.post").waitFor(visible);
    await detail.getByText("Müller & Söhne").waitFor(visible);
    await detail.getByText("Delivered").waitFor(visible);
    assert.equal(world.received.length, 1);
    await page.context().close();
    assert.deepEqual(complaints.splice(0), []);
  });
});
