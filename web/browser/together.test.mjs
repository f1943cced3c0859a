// What takes alerts together: an issue, a rule's page, a wall screen. Each test makes what it needs, so that it stands alone.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { accessibility, inBothThemes, tooWide, visible } from "./look.mjs";
import { createWorld } from "./world.mjs";

describe("what takes alerts together", { timeout: 720_000 }, () => {
  let world;
  let page;
  let rule;
  const call = async (method, path, data) => {
    const answer = await page.request.fetch(`${world.url}/api/v1${path}`, { method, data });
    assert.ok(answer.ok(), `${path}: ${answer.status()} ${await answer.text()}`);
    return answer.status() === 204 ? undefined : answer.json();
  };
  /** Makes exchanges of a separate route fail, and waits for their alerts. */
  const fail = async (route, count) => {
    await world.fail(...Array.from({ length: count }, (_, at) => ({ id: `${route}-${at}`, route })));
    for (const end = Date.now() + 15_000; Date.now() < end; ) {
      const { items } = await call("GET", `/alerts?route=${route}&limit=50`);
      if (items.length === count) return items;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`no ${count} alerts of ${route}`);
  };

  before(async () => {
    world = await createWorld();
    page = await (await world.context()).newPage();
    await page.goto(world.url);
    await world.signIn(page);
    await page.getByRole("heading", { name: "No rules yet" }).waitFor(visible);
    rule = await call("POST", "/rules", { name: "Failures", fireMode: "PER_EXCHANGE", severity: "CRITICAL" });
  });
  after(async () => {
    await world?.close();
  });

  test("an issue is opened from its group, acted upon as a whole, and knows that it came back", async () => {
    await fail("again", 3);
    await fail("other", 2);
    await page.goto(`${world.url}/inbox?route=again`);
    await page.getByRole("button", { name: /again.*×3/ }).click();
    await page.getByRole("link", { name: "Open issue" }).click();
    await page.getByText("Never resolved").waitFor(visible);
    await page.getByRole("button", { name: "Resolve 3 alerts" }).click();
    await page.getByText("3 alerts resolved.").waitFor(visible);
    await page.getByRole("link", { name: /^by / }).waitFor(visible);
    assert.equal((await call("GET", "/alerts?route=other&state=FIRING")).items.length, 2);

    await world.fail({ id: "again-9", route: "again" });
    await page.getByRole("link", { name: /^Seen again/ }).waitFor(visible);
    assert.equal(await page.getByText("1 firing, 3 resolved").count(), 1);
  });

  test("what is written about an issue is there for the next one who opens it", async () => {
    await fail("noted", 1);
    const [{ application, route, signature }] = (await call("GET", "/alerts/groups?by=issue&route=noted")).items;
    await page.goto(`${world.url}/issue?${new URLSearchParams({ app: application, route, error: signature })}`);
    await page.getByLabel("New note").fill("Ask the ERP team.\nThey know.");
    await page.getByRole("button", { name: "Add note" }).click();
    const notes = page.getByRole("list", { name: "Notes" });
    await notes.getByText("They know.").waitFor(visible);
    await page.reload();
    await notes.getByText("They know.").waitFor(visible);
    assert.deepEqual(await accessibility(page), []);
    const remove = notes.getByRole("button", { name: /^Delete note by/ });
    const size = page.viewportSize();
    await page.setViewportSize({ width: 360, height: 780 });
    await notes.locator("b").evaluate((author) => {
      author.textContent = "somebody.with.a.long.name@tocsin.example";
    });
    const [author, button] = [await notes.locator("b").boundingBox(), await remove.boundingBox()];
    assert.ok(button.y < author.y + author.height, "on a phone, the button is beside the author");
    await page.setViewportSize(size);
    await remove.click();
    await page.getByRole("button", { name: "Delete note", exact: true }).click();
    await page.getByText("No notes yet.").waitFor(visible);
  });

  test("the history of a rule tells an edit in the words of the page", async () => {
    const { version, ...rest } = await call("GET", `/rules/${rule.id}`);
    const definition = {
      name: rest.name,
      fireMode: rest.fireMode,
      severity: "WARNING",
      scope: { applications: ["orders"] },
    };
    const answer = await page.request.put(`${world.url}/api/v1/rules/${rule.id}`, {
      data: definition,
      headers: { "If-Match": `"${version}"` },
    });
    assert.ok(answer.ok(), await answer.text());
    await page.goto(`${world.url}/rules/${rule.id}`);
    const history = page.getByRole("region", { name: "History" });
    await history.getByText("changed the rule").first().waitFor(visible);
    await history.getByText("orders").first().waitFor(visible);
    await history.getByText("created the rule").waitFor(visible);
  });

  test("a wall screen shows what fires with a token that only reads, until that is revoked", async () => {
    await fail("wall", 2);
    const { secret, token } = await call("POST", "/tokens", { name: "wall", role: "viewer" });
    const context = await world.context({ viewport: { width: 3840, height: 2160 } });
    const wall = await context.newPage();
    await wall.goto(`${world.url}/wall#${secret}`);
    await wall.getByRole("link", { name: /wall/ }).waitFor(visible);
    assert.equal(new URL(wall.url()).hash, "", "the token leaves the address");
    assert.equal(await wall.getByRole("navigation").count(), 0);
    assert.deepEqual(await inBothThemes(wall), [], "the wall");
    assert.deepEqual(await wall.evaluate(tooWide), []);
    const refused = await context.request.post(`${world.url}/api/v1/alerts/acknowledge`, { data: { filter: {} } });
    assert.equal(refused.status(), 403);
    await call("DELETE", `/tokens/${token.id}`);
    await wall.reload();
    await wall.getByRole("heading", { name: "Sign in" }).waitFor(visible);
    await context.close();
  });
});
