// The inbox over many alerts and during a storm of them, in a real browser against the real binary: what it asks the server,
// how long answers take, and whether the page stays responsive. The short form runs with the other tests;
// STORM_ALERTS=100000 (make storm) is the long one, and says what it measured.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { visible } from "./look.mjs";
import { createStage, rows, tab } from "./stage.mjs";

const many = Number(process.env.STORM_ALERTS ?? 2_000);
const long = many > 2_000;
const stormSeconds = long ? 60 : 10;
const perSecond = 100;

/** How many requests per second a page may send while alerts come in, on average. */
const mostRequestsPerSecond = 4;
/** The longest that a person may wait for the page to react, on a machine that does other work. */
const longestTaskMs = 400;
const slowestAnswerMs = long ? 1_500 : 3_000;

describe(`the inbox with ${many} alerts`, { timeout: long ? 1_200_000 : 720_000 }, () => {
  let stage;
  let made = 0;

  /** Makes exchanges of some applications and routes fail, with a few errors. */
  const fail = (count) =>
    stage.world.fail(
      ...Array.from({ length: count }, () => {
        const at = made++;
        return {
          id: `storm-${at}`,
          application: `app-${at % 7}`,
          route: `route-${at % 31}`,
          message: `ERP refused order ${at}, cause ${at % 3}`,
        };
      }),
    );
  const counted = async (wanted, seconds) => {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
      const { firing } = await stage.call("GET", "/alerts/counts");
      if (firing >= wanted) return;
      await new Promise((done) => setTimeout(done, 500));
    }
    throw new Error(`no ${wanted} alerts`);
  };

  before(async () => {
    stage = await createStage();
    await stage.call("POST", "/rules", { name: "Failures", fireMode: "PER_EXCHANGE", severity: "CRITICAL" });
    await new Promise((done) => setTimeout(done, 500));
    for (let left = many; left > 0; left -= 5_000) await fail(Math.min(left, 5_000));
    await counted(many, long ? 900 : 60);
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  /** Opens a page that counts its requests and long tasks from now on. */
  const watch = async (path, options) => {
    const page = await stage.open("", options);
    await page.addInitScript(() => {
      window.tasks = [];
      new PerformanceObserver((list) => {
        for (const { duration, startTime } of list.getEntries()) window.tasks.push({ duration, startTime });
      }).observe({ type: "longtask", buffered: true });
    });
    const answers = [];
    page.on("requestfinished", (request) => {
      const { pathname } = new URL(request.url());
      if (!pathname.startsWith("/api/") || pathname.endsWith("/events")) return;
      const { requestStart, responseEnd } = request.timing();
      answers.push({ at: Date.now(), path: pathname, ms: responseEnd - requestStart });
    });
    const from = Date.now();
    await page.goto(stage.world.url + path);
    await rows(page)
      .or(page.locator("[data-alert]"))
      .first()
      .waitFor({ ...visible, timeout: 60_000 });
    return { page, answers, shownMs: Date.now() - from };
  };
  const tasksSince = (page, from) =>
    page.evaluate((start) => window.tasks.filter(({ startTime }) => startTime >= start), from);
  const report = (what, { answers, tasks, seconds }) => {
    const slowest = answers.toSorted((a, b) => b.ms - a.ms).slice(0, 3);
    const text = {
      what,
      requestsPerSecond: Math.round((answers.length / seconds) * 100) / 100,
      slowest: slowest.map(({ path, ms }) => `${path} ${Math.round(ms)} ms`),
      longTasks: tasks.length,
      longestTaskMs: Math.round(Math.max(0, ...tasks.map(({ duration }) => duration))),
      busyPercent: Math.round(tasks.reduce((all, { duration }) => all + duration, 0) / seconds / 10),
    };
    if (long || process.env.STORM_SAY) console.log(JSON.stringify(text));
    return text;
  };

  for (const [name, path] of [
    ["folded", "/inbox"],
    ["unfolded", "/inbox?fold=none"],
    ["filtered", "/inbox?fold=none&app=app-3&q=order"],
  ]) {
    test(`comes soon, ${name}`, async () => {
      const { page, answers, shownMs } = await watch(path);
      const tasks = await tasksSince(page, 0);
      report(`${path} in ${shownMs} ms`, { answers, tasks, seconds: shownMs / 1000 });
      const slow = answers.filter(({ ms }) => ms > slowestAnswerMs);
      assert.deepEqual(slow, []);
    });
  }

  for (const [name, path] of [
    ["folded", "/inbox"],
    ["unfolded", "/inbox?fold=none"],
  ]) {
    test(`stays calm during a storm, ${name}`, async () => {
      const { page, answers } = await watch(path);
      await tab(page, /^Firing/).waitFor(visible);
      answers.length = 0;
      const begin = await page.evaluate(() => performance.now());
      const before = made;
      const from = Date.now();
      for (let second = 0; second < stormSeconds; second++) {
        await fail(perSecond);
        await new Promise((done) => setTimeout(done, Math.max(0, from + (second + 1) * 1000 - Date.now())));
      }
      const seconds = (Date.now() - from) / 1000;
      const tasks = await tasksSince(page, begin);
      const { requestsPerSecond, longestTaskMs: longest } = report(`storm, ${name}`, { answers, tasks, seconds });
      assert.ok(requestsPerSecond <= mostRequestsPerSecond, `${requestsPerSecond} requests a second`);
      assert.ok(longest <= longestTaskMs, `a task of ${longest} ms`);
      // What came is there without a reload.
      await counted(made, 60);
      await tab(page, new RegExp(`^Firing\\s*${made.toLocaleString("en")}$`)).waitFor({ ...visible, timeout: 60_000 });
      assert.ok(made > before);
    });
  }
});
