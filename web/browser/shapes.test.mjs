// What else is to be seen on pages: what opens on them, in forced colours, and how they use the width of a screen, in a real
// browser against the real binary. All tests read the same alerts, and none changes them.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { accessibility, inBothThemes, tooWide, visible, visit } from "./look.mjs";
import { createShown, devices } from "./shown.mjs";
import { rows } from "./stage.mjs";

describe("parts of pages", { timeout: 2_160_000 }, () => {
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

  test("a webhook has its kind, its state and its actions on one line of a phone", async () => {
    const opened = await stage.open("/webhooks", { viewport: devices.phone });
    const row = opened.getByRole("row").filter({ hasText: shown.webhook.name });
    await row.getByText("Enabled", { exact: true }).waitFor(visible);
    const middle = async (part) => {
      const { y, height } = await part.boundingBox();
      return y + height / 2;
    };
    const state = await middle(row.getByText("Enabled", { exact: true }));
    const remove = await middle(row.getByRole("button", { name: /^Delete / }));
    assert.ok(Math.abs(state - remove) < 12, `${state} and ${remove}`);
    assert.deepEqual(await opened.evaluate(tooWide), []);
  });

  test("a phone's bar marks More on the pages that it leads to", async () => {
    const opened = await stage.open("", { viewport: devices.phone });
    for (const path of ["/silences", "/routing", "/users", "/account"]) {
      await opened.goto(stage.world.url + path);
      await opened.locator('nav [aria-current="true"]').getByText("More", { exact: true }).waitFor(visible);
    }
  });

  test("shows in forced colours what is on and what is checked", async () => {
    const opened = await stage.open("/rules", { viewport: devices.desktop, forcedColors: "active" });
    const track = opened.locator(".mantine-Switch-input:checked + .mantine-Switch-track").first();
    await track.waitFor(visible);
    const colours = (locator) =>
      locator.evaluate((element) => {
        const { color, backgroundColor } = getComputedStyle(element);
        return { color, backgroundColor, page: getComputedStyle(document.body).backgroundColor };
      });
    const on = await colours(track);
    assert.notEqual(on.backgroundColor, on.page);
    await opened.goto(`${stage.world.url}/rules/${shown.rule.id}/edit`);
    const checked = opened.locator(".mantine-Checkbox-input:checked + .mantine-Checkbox-icon").first();
    await checked.waitFor({ state: "attached", timeout: 45_000 });
    const mark = await colours(checked);
    assert.notEqual(mark.color, mark.page);
    // A page's own colours may be invisible on the system's background.
    await opened.goto(`${stage.world.url}/inbox`);
    const tabs = opened.getByRole("navigation", { name: "State" }).locator("a");
    await tabs.first().waitFor(visible);
    for (const tab of await tabs.all()) {
      assert.equal((await colours(tab.locator("svg"))).color, (await colours(tab)).color);
    }
  });

  test("what opens on a page can be used by everybody, too", async () => {
    const opened = await stage.open("/webhooks/new", { viewport: devices.phone });
    const holds = async (what) => {
      assert.deepEqual(await inBothThemes(opened), [], what);
      assert.deepEqual(await opened.evaluate(tooWide), [], what);
    };
    await opened.getByText("Receiver", { exact: true }).click();
    const receivers = opened.getByRole("list", { name: "Receivers" });
    await receivers.getByRole("button").first().waitFor(visible);
    await holds("the receivers");
    await receivers.getByRole("button", { name: /^PagerDuty/ }).click();
    await opened.getByRole("group", { name: "Chosen receiver" }).waitFor(visible);
    await opened.getByText("Request preview").click();
    await opened.getByText(/^POST https/).waitFor(visible);
    await holds("a receiver");
    await opened.getByRole("button", { name: "Choose another receiver" }).click();
    await receivers.getByRole("button", { name: /^E-mail/ }).click();
    await opened.getByRole("group", { name: "Chosen receiver" }).waitFor(visible);
    await holds("e-mail");
    const choices = await stage.call("GET", "/receivers");
    for (let at = 0; at < choices.items.length; at++) {
      await opened.getByRole("button", { name: "Choose another receiver" }).click();
      await receivers.getByRole("button").nth(at).click();
      await opened.getByText("Request preview").click();
      await opened
        .getByText(/^[A-Z]+ \w+:\/\//)
        .first()
        .waitFor(visible);
      // The first two were looked at in both themes, and all are made of the same fields.
      assert.deepEqual(await accessibility(opened), [], `receiver ${at + 1}`);
      assert.deepEqual(await opened.evaluate(tooWide), [], `receiver ${at + 1}`);
    }

    await opened.goto(`${stage.world.url}/rules/new`);
    await opened.getByText("Missing exchanges", { exact: true }).click();
    await opened.getByText("Expect exchanges only during certain hours").click();
    await opened.getByLabel("Time zone").waitFor(visible);
    await holds("missing exchanges");

    await opened.goto(`${stage.world.url}/rules/${shown.rule.id}/edit`);
    await opened.getByRole("checkbox", { name: /^Resolve open alerts by age/ }).check();
    await opened.getByLabel("Resolve when this completes").selectOption("ATTRIBUTE");
    await opened.getByRole("combobox", { name: "Attribute" }).last().waitFor(visible);
    await holds("what resolves alerts");

    await opened.goto(`${stage.world.url}/inbox?app=orders`);
    await opened.getByRole("button", { name: "Views" }).click();
    await opened.getByRole("button", { name: "Delete Orders" }).waitFor(visible);
    await holds("views");

    await opened.goto(`${stage.world.url}/inbox/${shown.alert.id}`);
    await opened.getByRole("button", { name: /^Snooze/ }).click();
    await opened.getByLabel("How long").selectOption({ label: "Until a specific time" });
    await holds("snoozing");

    await opened.goto(`${stage.world.url}/inbox/${shown.counted.id}`);
    await opened.getByRole("button", { name: "Resolve for…" }).click();
    await opened.getByLabel("Duration", { exact: true }).waitFor(visible);
    await holds("resolving for a time");

    await opened.goto(`${stage.world.url}/routing`);
    await opened.getByRole("button", { name: "Edit Critical" }).click();
    await opened.getByRole("textbox", { name: "Name" }).waitFor(visible);
    await holds("a route");
  });

  test("keeps the preview of a long body within its column, and ends a long choice before its arrow", async () => {
    const opened = await stage.open(`/rules/${shown.rule.id}/edit`);
    const body = opened.getByRole("region", { name: "Body of the request" });
    await body.waitFor(visible);
    for (const viewport of [devices.desktop, devices.wall]) {
      await opened.setViewportSize(viewport);
      const right = await body.evaluate((element) => element.getBoundingClientRect().right);
      assert.ok(right <= viewport.width, `reaches to ${right} of ${viewport.width}`);
    }
    const about = opened.getByLabel("About", { exact: true });
    await about.waitFor(visible);
    const { end, cut } = await about.evaluate((select) => {
      const { paddingRight, textOverflow } = getComputedStyle(select);
      return { end: Number.parseFloat(paddingRight), cut: textOverflow };
    });
    assert.ok(end >= 20, `the arrow has ${end} px`);
    assert.equal(cut, "ellipsis");
  });

  test("the links to the parts of a rule mark the one that is read, down to the last", async () => {
    const opened = await stage.open(`/rules/${shown.rule.id}/edit`);
    const parts = opened.getByRole("navigation", { name: "Parts of the rule" });
    for (const name of ["Filter", "Details", "Review", "Details", "Scope"]) {
      await parts.getByRole("button", { name, exact: true }).click();
      await parts.locator('[aria-current="true"]', { hasText: name }).waitFor(visible);
    }
  });

  test("charts say their values to the keyboard", async () => {
    const opened = await stage.open("", { viewport: devices.wall, forcedColors: "active" });
    for (const [path, chart] of [
      [`/rules/${shown.rule.id}`, /per 15 minutes/],
      [shown.issue, /^Alerts per hour/],
      ["/system", /^Evaluation lag/],
      [`/webhooks/${shown.webhook.id}`, /^Attempts per hour/],
    ]) {
      await opened.goto(stage.world.url + path);
      const drawn = opened.getByRole("img", { name: chart });
      await drawn.locator("canvas").waitFor(visible);
      await drawn.focus();
      await opened.keyboard.press("End");
      await opened
        .getByText(/\d\d:\d\d · /)
        .first()
        .waitFor(visible);
    }
  });

  const boxOf = async (locator) => {
    for (;;) {
      await locator.waitFor(visible);
      const box = await locator.boundingBox();
      // A row that is drawn again has none.
      if (box) return box;
    }
  };

  /** Waits until a look finds nothing: what follows a width by a script is drawn a moment after the rest. */
  const settles = async (look) => {
    for (const end = Date.now() + 10_000; ; await new Promise((done) => setTimeout(done, 50))) {
      try {
        return await look();
      } catch (error) {
        if (Date.now() > end) throw error;
      }
    }
  };

  test("uses a screen of 1920, 2560 and 3840 px to its edge", async () => {
    const opened = await stage.open("/account");
    const reaching = {
      "/inbox": rows(opened).first(),
      "/deliveries": opened.getByRole("link", { name: /Receiver .* · Alert/ }).first(),
      "/rules": opened.getByRole("row", { name: new RegExp(shown.rule.name) }),
      "/webhooks": opened.getByRole("row", { name: new RegExp(shown.webhook.name) }),
      "/system": opened.getByRole("row", { name: /serves this page/ }),
      "/audit": opened.getByRole("row", { name: /created webhook/ }).first(),
    };
    /** Goes to a page, and looks at it in each width. */
    const inEach = async (path, look) => {
      await visit(opened, path);
      for (const width of [1920, 2560, 3840]) {
        await opened.setViewportSize({ width, height: 1080 });
        await look(width, `${path} on ${width} px`);
      }
    };
    for (const [path, wide] of Object.entries(reaching)) {
      await inEach(path, async (width, where) => {
        await settles(async () => {
          const { x, width: w } = await boxOf(wide);
          assert.equal(Math.round(x + w), width, where);
        });
        assert.deepEqual(await opened.evaluate(tooWide), [], where);
      });
    }
    await inEach(`/inbox/${shown.alert.id}`, (width, where) =>
      settles(async () => {
        const error = await boxOf(opened.getByRole("heading", { name: "Error" }));
        const timeline = await boxOf(opened.getByRole("heading", { name: "Timeline" }));
        assert.equal(timeline.y === error.y, width > 1920, `${where}: beside each other, or one below the other`);
      }),
    );
    await inEach("/rules/new", (width, where) =>
      settles(async () => {
        const raised = await boxOf(opened.getByRole("heading", { name: "What this rule would have raised" }));
        const preview = await boxOf(opened.getByRole("heading", { name: "Message preview" }));
        assert.equal(preview.x > raised.x, width > 1920, `${where}: the message preview`);
      }),
    );
  });

  test("lets the lines of a form end where its fields do, on a phone and on a desk", async () => {
    const opened = await stage.open(`/webhooks/${shown.webhook.id}`);
    for (const width of [360, 1280]) {
      await opened.setViewportSize({ width, height: 800 });
      const panel = await boxOf(opened.getByRole("region", { name: "State", exact: true }));
      const name = await boxOf(opened.getByLabel("Name"));
      assert.deepEqual([panel.x, panel.width], [name.x, name.width], `at ${width} px`);
    }
  });

  test("keeps together on a phone what belongs together", async () => {
    const opened = await stage.open("/inbox?fold=none", { viewport: { width: 360, height: 800 } });
    await opened.getByRole("checkbox", { name: "Select all matching alerts" }).check();
    const many = await boxOf(opened.getByText(/^\d+ selected$/));
    const none = await boxOf(opened.getByRole("button", { name: "Clear selection" }));
    const act = await boxOf(opened.getByRole("button", { name: /^Acknowledge \d+/ }));
    assert.ok(
      many.y < none.y + none.height && none.y < many.y + many.height,
      "what ends a selection stands beside its number",
    );
    assert.ok(act.y >= none.y + none.height, "and the actions below");

    await opened.goto(`${stage.world.url}/rules`);
    const card = opened.getByRole("row", { name: new RegExp(shown.rule.name) });
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
    const remove = await boxOf(card.getByRole("button", { name: `Delete ${shown.rule.name}` }));
    assert.ok(enabled.x > 180 && remove.x > enabled.x, "what is done with a rule is together, at the right");
  });
});
