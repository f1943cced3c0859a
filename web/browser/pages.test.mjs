// How every page looks and can be used: both themes, on a phone and on a desk, in a real browser against the real binary. All
// tests read the same alerts, and none changes them.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { accessibility, covered, scrollsAway, tooWide, visible } from "./look.mjs";
import { createShown, devices, pagesOf } from "./shown.mjs";

describe("every page", { timeout: 2_160_000 }, () => {
  let shown;
  let stage;

  before(async () => {
    shown = await createShown();
    ({ stage } = shown);
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  for (const scheme of ["light", "dark"]) {
    for (const device of ["phone", "desktop"]) {
      const viewport = devices[device];
      test(`can be used by everybody: ${scheme}, ${device}`, async () => {
        const opened = await stage.open("", { viewport, colorScheme: scheme });
        for (const [path, sign] of Object.entries(pagesOf(shown, opened))) {
          const where = `${path} in ${scheme} on a ${device}`;
          await opened.goto(stage.world.url + path);
          await sign.waitFor(visible);
          await opened.getByText("Live", { exact: true }).waitFor(visible);
          assert.deepEqual(await accessibility(opened), [], where);
          assert.deepEqual(await opened.evaluate(tooWide), [], where);
          assert.deepEqual(await opened.evaluate(scrollsAway), [], where);
          if (device === "desktop") assert.deepEqual(await opened.evaluate(covered), [], where);
        }
      });
    }
  }
});
