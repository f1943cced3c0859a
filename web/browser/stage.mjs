// What tests of pages have in common: a world in which somebody is signed in, and, for each test, things of its own that
// are made through the API. No test needs what another has left.
import assert from "node:assert/strict";
import { visible } from "./look.mjs";
import { createWorld, lastsMs } from "./world.mjs";

/** What a browser itself reports: each 4xx answer, and each broken connection. Tests name those that they cause. */
const always = /status of 401/;

/** Creates a world with an administrator who is signed in. */
export async function createStage() {
  const world = await createWorld();
  try {
    return await furnish(world);
  } catch (error) {
    await world.close();
    throw error;
  }
}

async function furnish(world) {
  const complaints = [];
  const elsewhere = [];
  const pages = [];
  let names = 0;

  const context = await world.context();
  const first = await context.newPage();
  await first.goto(world.url);
  await world.signIn(first);
  await first.getByRole("navigation", { name: "Tocsin" }).waitFor(visible);
  const storageState = await context.storageState();

  const stage = {
    world,
    storageState,
    /** What the browser may report in a test, in addition to the answer to people who are not signed in. */
    asked: undefined,
    /** Calls the API as the administrator. */
    call: async (method, path, data, headers = {}) => {
      const answer = await context.request.fetch(`${world.url}/api/v1${path}`, { method, data, headers });
      assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
      return answer.status() === 204 ? undefined : answer.json();
    },
    /** Watches the errors of a page, and its requests to other hosts. */
    listen: (opened) => {
      pages.push(opened);
      opened.on("console", (said) => {
        if (said.type() !== "error" || always.test(said.text()) || stage.asked?.test(said.text())) return;
        complaints.push(said.text());
      });
      opened.on("pageerror", (error) => complaints.push(error.message));
      opened.on("request", (request) => {
        if (new URL(request.url()).host !== new URL(world.url).host) elsewhere.push(request.url());
      });
      return opened;
    },
    /** A page at an address, in a separate browser in which the administrator is signed in. */
    open: async (path, options = {}) => {
      const own = await world.context({ storageState, ...options });
      const opened = stage.listen(await own.newPage());
      if (path) await opened.goto(world.url + path);
      return opened;
    },
    /** Ends a test: closes its pages, and checks that they reported no errors and sent no request to other hosts. */
    end: async () => {
      await Promise.all(pages.splice(0).map((opened) => opened.context().close()));
      stage.asked = undefined;
      world.answers.status = 200;
      assert.deepEqual([complaints.splice(0), elsewhere.splice(0)], [[], []]);
    },
    /** A unique name. */
    name: (word) => `${word}-${++names}`,
    /** A webhook that sends to the world's receiver. */
    webhook: (name = stage.name("Receiver")) =>
      stage.call("POST", "/webhooks", { name, kind: "generic", url: world.receiver }),
    /** A rule for each failure of a separate application, with a separate webhook. */
    rule: async (definition = {}) => {
      const application = stage.name("shop");
      const webhook = await stage.webhook(`Receiver of ${application}`);
      const rule = await stage.call("POST", "/rules", {
        name: `Failures of ${application}`,
        fireMode: "PER_EXCHANGE",
        severity: "CRITICAL",
        webhookIds: [webhook.id],
        scope: { applications: [application] },
        ...definition,
      });
      // An exchange counts for a rule if it began after the rule did.
      while (Date.now() - lastsMs <= Date.parse(rule.armedSince)) await new Promise((done) => setTimeout(done, 10));
      return { application, rule, webhook };
    },
    /**
     * Makes exchanges of an application fail, one of each route, and waits for their alerts;
     * returns these, newest first.
     */
    fail: async (application, routes, rest = {}) => {
      await world.fail(...routes.map((route) => ({ id: stage.name("x"), application, route, ...rest })));
      return stage.alerts(application, routes);
    },
    /** Waits until an application has alerts of these routes. */
    alerts: async (application, routes) => {
      const wanted = new Set(routes);
      for (const end = Date.now() + 30_000; Date.now() < end; ) {
        const found = [];
        for (let cursor = ""; ; ) {
          const page = await stage.call("GET", `/alerts?application=${application}&limit=200${cursor}`);
          found.push(...page.items.filter(({ exchange }) => wanted.has(exchange.route)));
          if (!page.nextCursor) break;
          cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`;
        }
        if (found.length >= routes.length) return found;
        await new Promise((done) => setTimeout(done, 100));
      }
      throw new Error(`not all alerts of ${application} are there`);
    },
    /** Makes one exchange of the application of a window rule fail, and waits for its alerts. */
    counted: async (application, rule) => {
      await world.fail({ id: stage.name("x"), application });
      for (const end = Date.now() + 60_000; Date.now() < end; ) {
        const { items } = await stage.call("GET", `/alerts?ruleId=${rule.id}`);
        if (items.length > 0) return items;
        await new Promise((done) => setTimeout(done, 200));
      }
      throw new Error(`no alert of ${rule.name}`);
    },
    /** What the receiver got about an application. */
    receivedOf: (application) =>
      world.received.filter((body) => JSON.stringify(body).includes(JSON.stringify(application))),
    close: () => world.close(),
  };
  stage.listen(first);
  pages.length = 0;
  return stage;
}

/** The rows of the list of alerts. */
export const rows = (opened) => opened.getByRole("list", { name: "Alerts" }).getByRole("link");

/** The row of a route. */
export const rowOf = (opened, route) => rows(opened).filter({ hasText: route });

/** The tab of a state above the list. */
export const tab = (opened, name) => opened.getByRole("navigation", { name: "State" }).getByRole("link", { name });
