// How every page looks and can be used: in both themes, on a phone, a desk and a wall, and in forced colours, in a real browser
// against the real binary. All tests read the same alerts, and none changes them.
//
// A page is visited once on a phone and once on a desk, because some parts are made for one of them alone, as by a link:
// people.test.mjs and shapes.test.mjs open pages by their addresses. Themes, forced colours and the size of a wall are then
// changed under it, as a user may do, too.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { covered, idle, inBothThemes, scrollsAway, tooWide, visible, visit } from "./look.mjs";
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

  for (const device of ["phone", "desktop"]) {
    test(`can be used by everybody: ${device}`, async () => {
      const viewport = devices[device];
      const opened = await stage.open("/inbox", { viewport, colorScheme: device === "phone" ? "dark" : "light" });
      for (const [path, sign] of Object.entries(pagesOf(shown, opened))) {
        const where = `${path} on a ${device}`;
        // A page is drawn first in the dark on a phone, and in the light on a desk.
        await opened.emulateMedia({ colorScheme: device === "phone" ? "dark" : "light" });
        await visit(opened, path);
        await sign.waitFor(visible);
        await opened.getByText("Live", { exact: true }).waitFor(visible);
        assert.deepEqual(await inBothThemes(opened), [], where);
        assert.deepEqual(await opened.evaluate(tooWide), [], where);
        assert.deepEqual(await opened.evaluate(scrollsAway), [], where);
        if (device === "desktop") assert.deepEqual(await opened.evaluate(covered), [], where);

        await opened.emulateMedia({ forcedColors: "active" });
        assert.deepEqual(await opened.evaluate(tooWide), [], `${where} in forced colours`);
        await opened.emulateMedia({ forcedColors: "none" });
        if (device === "desktop") {
          await opened.setViewportSize(devices.wall);
          // Charts are as wide as their place once a frame has been drawn.
          await opened.waitForTimeout(100);
          await idle(opened);
          assert.deepEqual(await opened.evaluate(tooWide), [], `${path} on a wall of 4K`);
          await opened.setViewportSize(viewport);
        }
      }
    });
  }
});
