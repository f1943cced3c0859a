// How every page looks and can be used: both themes, phone to wall, forced colours, in a real browser against the real
// binary. All tests read the same alerts, and none changes them.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { accessibility, covered, scrollsAway, tooWide, visible } from "./look.mjs";
import { createStage, rows } from "./stage.mjs";

const devices = {
  phone: { width: 360, height: 780 },
  desktop: { width: 1440, height: 900 },
  wall: { width: 3840, height: 2160 },
};

describe("every page", { timeout: 540_000 }, () => {
  let stage;
  /** Of what is shown: one rule, its webhook, an alert of it and the message about that. */
  let rule;
  let webhook;
  let alert;
  let message;
  let issue;
  let silence;
  /** An alert of a rule that counts by the values of an attribute. */
  let counted;

  before(async () => {
    stage = await createStage();
    const made = await stage.rule();
    ({ rule, webhook } = made);
    const { application } = made;
    [alert] = await stage.fail(application, [
      ...Array.from({ length: 20 }, (_, at) => `export-${at}`),
      ...Array(5).fill("import"),
    ]);
    const groups = await stage.call("GET", `/alerts/groups?by=issue&application=${application}`);
    const { route, signature } = groups.items.find((group) => group.count > 1);
    issue = `/issue?${new URLSearchParams({ app: application, route, error: signature })}`;
    // Of another application, so that the messages are sent.
    silence = await stage.call("POST", "/silences", {
      name: "ERP maintenance",
      reason: "The ERP is upgraded.",
      match: { scope: { applications: ["erp-of-nobody"] } },
      recurrence: { timeZone: "Europe/Berlin", weekdays: ["MONDAY"], from: "22:00", durationMinutes: 480 },
    });
    await stage.call(
      "PUT",
      "/teams",
      { teams: [{ name: "Platform", members: ["ada@example.com"], groups: ["sre"], webhookIds: [webhook.id] }] },
      { "If-Match": '"1"' },
    );
    await stage.call(
      "PUT",
      "/routing",
      {
        routes: [
          {
            name: "Critical",
            match: { severities: ["CRITICAL"] },
            webhookIds: [webhook.id],
            continue: true,
            escalation: [{ afterMinutes: 15, webhookIds: [], teams: ["Platform"] }],
          },
          { name: "Tests tell nobody", match: { scope: { environments: ["test*"] } } },
        ],
        defaultWebhookIds: [webhook.id],
      },
      { "If-Match": '"1"' },
    );
    await stage.call("POST", "/views", { name: "Orders", search: "app=orders", shared: true });
    const many = await stage.rule({
      name: "Failures of a customer",
      fireMode: "COUNT_IN_WINDOW",
      threshold: 1,
      windowSeconds: 600,
      groupBy: "ATTRIBUTE",
      groupByAttribute: "customer",
    });
    [counted] = await stage.counted(many.application, many.rule);
    for (const end = Date.now() + 15_000; !message && Date.now() < end; ) {
      [message] = (await stage.call("GET", "/notifications?status=DELIVERED&limit=1")).items;
    }
  });
  afterEach(() => stage.end());
  after(async () => {
    await stage?.close();
  });

  /** Each page, and what is there once it has come. */
  const pagesOf = (opened) => ({
    "/inbox": rows(opened).first(),
    [`/inbox/${alert.id}`]: opened.getByText("ErpClient.post"),
    "/inbox?q=nothing": opened.getByRole("heading", { name: "No matching alerts" }),
    "/inbox?fold=error": opened.getByRole("button", { name: /×/ }).first(),
    [issue]: opened.getByRole("img", { name: /^Alerts per hour/ }),
    "/deliveries": opened.getByRole("link", { name: /Receiver .* · Alert/ }).first(),
    [`/deliveries/${message.id}`]: opened.getByText(/^HTTP\/1.1 200/),
    "/system": opened.getByRole("row", { name: /answers this page/ }),
    "/routing": opened.getByRole("heading", { name: "Default" }),
    "/wall": opened.getByText(/firing$/).first(),
    "/rules": opened.getByRole("row", { name: new RegExp(rule.name) }),
    "/rules/new": opened.getByLabel(webhook.name),
    [`/rules/${rule.id}`]: opened.getByRole("img", { name: /by quarter of an hour/ }),
    [`/rules/${rule.id}/edit`]: opened.getByText(/this would have raised/).first(),
    "/explain": opened.getByLabel("Execution id"),
    "/webhooks": opened.getByRole("row", { name: new RegExp(webhook.name) }),
    "/webhooks/new": opened.getByRole("button", { name: "Create the webhook" }),
    [`/webhooks/${webhook.id}`]: opened.locator(".cm-content"),
    "/silences": opened.getByRole("row", { name: /ERP maintenance/ }),
    "/silences?show=past": opened.getByRole("heading", { name: "No past silences" }),
    [`/silences/new?alert=${alert.id}`]: opened.getByText(/^There were .* alerts?\./),
    [`/silences/${silence.id}`]: opened.getByText("Next windows"),
    "/account": opened.getByText("Administrator", { exact: true }),
    "/users": opened.getByRole("row", { name: /ada@example.com/ }),
    "/teams": opened.getByText("Platform", { exact: true }).first(),
    "/tokens": opened.getByRole("heading", { name: "No API tokens yet" }),
    "/audit": opened.getByText(/created webhook/).first(),
    "/keys": opened.getByRole("row", { name: /Active/ }),
    "/no/such": opened.getByRole("heading", { name: "Page not found" }),
  });

  for (const scheme of ["light", "dark"]) {
    for (const device of ["phone", "desktop"]) {
      const viewport = devices[device];
      test(`can be used by everybody: ${scheme}, ${device}`, async () => {
        const opened = await stage.open("", { viewport, colorScheme: scheme });
        for (const [path, sign] of Object.entries(pagesOf(opened))) {
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

  test("fits a wall of 4K", async () => {
    const opened = await stage.open("", { viewport: devices.wall, colorScheme: "dark" });
    for (const [path, sign] of Object.entries(pagesOf(opened))) {
      await opened.goto(stage.world.url + path);
      await sign.waitFor(visible);
      assert.deepEqual(await opened.evaluate(tooWide), [], path);
    }
  });

  test("can be used in forced colours", async () => {
    const opened = await stage.open("", { viewport: devices.desktop, forcedColors: "active" });
    for (const [path, sign] of Object.entries(pagesOf(opened))) {
      await opened.goto(stage.world.url + path);
      await sign.waitFor(visible);
      const found = await accessibility(opened);
      // Forced colours are the system's, which is why nothing is said of their contrast.
      assert.deepEqual(
        found.filter((one) => !/contrast/.test(one)),
        [],
        path,
      );
      assert.deepEqual(await opened.evaluate(tooWide), [], path);
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
    await opened.goto(`${stage.world.url}/rules/${rule.id}/edit`);
    const checked = opened.locator(".mantine-Checkbox-input:checked + .mantine-Checkbox-icon").first();
    await checked.waitFor({ state: "attached", timeout: 15_000 });
    const mark = await colours(checked);
    assert.notEqual(mark.color, mark.page);
  });

  for (const scheme of ["light", "dark"]) {
    test(`what opens on a page can be used by everybody, too: ${scheme}`, async () => {
      for (const viewport of [devices.phone]) {
        const opened = await stage.open("/webhooks/new", { viewport, colorScheme: scheme });
        const holds = async (what) => {
          assert.deepEqual(await accessibility(opened), [], `${what}, ${viewport.width} px`);
          assert.deepEqual(await opened.evaluate(tooWide), [], `${what}, ${viewport.width} px`);
        };
        await opened.getByText("Another service", { exact: true }).click();
        const services = opened.getByRole("list", { name: "Services" });
        await services.getByRole("button").first().waitFor(visible);
        await holds("the services");
        await services.getByRole("button", { name: /^PagerDuty/ }).click();
        await opened.getByRole("group", { name: "Service" }).waitFor(visible);
        await opened.getByText("Preview of the requests").click();
        await opened.getByText(/^POST https/).waitFor(visible);
        await holds("a service");
        await opened.getByRole("button", { name: "Choose another" }).click();
        await services.getByRole("button", { name: /^E-mail/ }).click();
        await opened.getByRole("group", { name: "Service" }).waitFor(visible);
        await holds("an e-mail service");

        await opened.goto(`${stage.world.url}/rules/new`);
        await opened.getByText("Missing exchanges", { exact: true }).click();
        await opened.getByText("Expect exchanges only at certain hours").click();
        await opened.getByLabel("Time zone").waitFor(visible);
        await holds("missing exchanges");

        await opened.goto(`${stage.world.url}/rules/${rule.id}/edit`);
        await opened.getByRole("checkbox", { name: /^Resolve open alerts by age/ }).check();
        await opened.getByLabel("Resolve when this completes").selectOption("ATTRIBUTE");
        await opened.getByRole("combobox", { name: "Attribute" }).last().waitFor(visible);
        await holds("what resolves alerts");

        await opened.goto(`${stage.world.url}/inbox?app=orders`);
        await opened.getByRole("button", { name: "Views" }).click();
        await opened.getByRole("button", { name: "Delete Orders" }).waitFor(visible);
        await holds("views");

        await opened.goto(`${stage.world.url}/inbox/${alert.id}`);
        await opened.getByRole("button", { name: /^Snooze/ }).click();
        await opened.getByLabel("How long").selectOption({ label: "Until another time" });
        await holds("snoozing");

        await opened.goto(`${stage.world.url}/inbox/${counted.id}`);
        await opened.getByRole("button", { name: "Resolve for…" }).click();
        await opened.getByLabel("Keep quiet for", { exact: true }).waitFor(visible);
        await holds("resolving for a time");

        await opened.goto(`${stage.world.url}/routing`);
        await opened.getByRole("button", { name: "Edit Critical" }).click();
        await opened.getByRole("textbox", { name: "Name" }).waitFor(visible);
        await holds("a route");
        await opened.context().close();
      }
    });
  }

  test("keeps the preview of a long body within its column", async () => {
    for (const viewport of [devices.desktop, devices.wall]) {
      const opened = await stage.open(`/rules/${rule.id}/edit`, { viewport });
      const body = opened.getByRole("region", { name: "Body of the request" });
      await body.waitFor(visible);
      const right = await body.evaluate((element) => element.getBoundingClientRect().right);
      assert.ok(right <= viewport.width, `reaches to ${right} of ${viewport.width}`);
    }
  });

  test("charts say their values to the keyboard", async () => {
    const opened = await stage.open("", { viewport: devices.wall, forcedColors: "active" });
    for (const [path, chart] of [
      [`/rules/${rule.id}`, /by quarter of an hour/],
      [issue, /^Alerts per hour/],
      ["/system", /^Evaluation lag/],
      [`/webhooks/${webhook.id}`, /^Attempts per hour/],
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
    await locator.waitFor(visible);
    return locator.boundingBox();
  };

  for (const width of [1920, 2560, 3840]) {
    test(`uses a screen of ${width} px to its edge`, async () => {
      const opened = await stage.open("", { viewport: { width, height: 1080 } });
      const reaching = {
        "/inbox": rows(opened).first(),
        "/deliveries": opened.getByRole("link", { name: /Receiver .* · Alert/ }).first(),
        "/rules": opened.getByRole("row", { name: new RegExp(rule.name) }),
        "/webhooks": opened.getByRole("row", { name: new RegExp(webhook.name) }),
        "/system": opened.getByRole("row", { name: /answers this page/ }),
        "/audit": opened.getByRole("row", { name: /created webhook/ }).first(),
      };
      for (const [path, wide] of Object.entries(reaching)) {
        await opened.goto(stage.world.url + path);
        const { x, width: w } = await boxOf(wide);
        assert.equal(Math.round(x + w), width, path);
        assert.deepEqual(await opened.evaluate(tooWide), [], path);
      }
      await opened.goto(`${stage.world.url}/inbox/${alert.id}`);
      const error = await boxOf(opened.getByRole("heading", { name: "Error" }));
      const timeline = await boxOf(opened.getByRole("heading", { name: "Timeline" }));
      assert.equal(timeline.y === error.y, width > 1920, "beside each other, or one below the other");
      await opened.goto(`${stage.world.url}/rules/new`);
      const raised = await boxOf(opened.getByRole("heading", { name: "What it would have raised" }));
      const preview = await boxOf(opened.getByRole("heading", { name: "Message preview" }));
      assert.equal(preview.x > raised.x, width > 1920, "the message preview");
    });
  }

  for (const width of [360, 1280]) {
    test(`lets the lines of a form end where its fields do, at ${width} px`, async () => {
      const opened = await stage.open(`/webhooks/${webhook.id}`, { viewport: { width, height: 800 } });
      const panel = await boxOf(opened.getByRole("region", { name: "State", exact: true }));
      const name = await boxOf(opened.getByLabel("Name"));
      assert.deepEqual([panel.x, panel.width], [name.x, name.width]);
    });
  }

  test("keeps together on a phone what belongs together", async () => {
    const opened = await stage.open("/inbox?fold=none", { viewport: { width: 360, height: 800 } });
    await opened.getByRole("checkbox", { name: "Select all matching alerts" }).check();
    const many = await boxOf(opened.getByText(/^\d+ selected$/));
    const none = await boxOf(opened.getByRole("button", { name: "Clear the selection" }));
    const act = await boxOf(opened.getByRole("button", { name: /^Acknowledge \d+/ }));
    assert.ok(
      many.y < none.y + none.height && none.y < many.y + many.height,
      "what ends a selection stands beside its number",
    );
    assert.ok(act.y >= none.y + none.height, "and the actions below");

    await opened.goto(`${stage.world.url}/rules`);
    const card = opened.getByRole("row", { name: new RegExp(rule.name) });
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
    const remove = await boxOf(card.getByRole("button", { name: `Delete ${rule.name}` }));
    assert.ok(enabled.x > 180 && remove.x > enabled.x, "what is done with a rule is together, at the right");
  });
});
