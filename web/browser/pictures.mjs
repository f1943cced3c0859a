// Takes the pictures of the README from a Tocsin that runs, such as the one of `make run`:
//
//   node browser/pictures.mjs http://127.0.0.1:PORT/sign-in#…
//
// The link that `make run` prints signs in once. Beside the pictures it writes labels.json, with what each of them says:
// internal/checks takes data out of it, and asks for new pictures when a label has changed.
import { mkdir, writeFile } from "node:fs/promises";
import { chromium } from "playwright-core";

const address = process.argv[2];
if (!address) {
  console.error(
    "Say where Tocsin runs: node browser/pictures.mjs 'http://127.0.0.1:PORT/sign-in#…' (make run prints it).",
  );
  process.exit(2);
}
const folder = new URL("../../docs/pictures/", import.meta.url);
await mkdir(folder, { recursive: true });

// The folders of web/src that every page is built of, beside its own.
const everywhere = ["app", "frame", "ui"];
const pictures = [];

/** Returns the visible texts of headings, buttons, links, fields and columns. */
function labels(page) {
  return page.evaluate(() => {
    const found = new Set();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const { parentElement, data } = texts.currentNode;
      const label = data.trim().replace(/\s+/g, " ");
      const shown = parentElement.closest(
        "h1, h2, h3, h4, button, a, label, legend, th, dt, option:checked, [role=tab], .mantine-InputWrapper-label",
      );
      if (!label || !shown?.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      // What only screen readers announce is in a box of one pixel.
      if (parentElement.getBoundingClientRect().width <= 1) continue;
      const range = document.createRange();
      range.selectNodeContents(texts.currentNode);
      const { left, right, top, bottom } = range.getBoundingClientRect();
      if (right > 0 && bottom > 0 && left < innerWidth && top < innerHeight) found.add(label);
    }
    return [...found].sort();
  });
}

/** Writes what a page shows as WebP without loss, about half the size of the PNG. */
async function keep(name, page, sources) {
  pictures.push({ name: `${name}.webp`, sources: [...everywhere, ...sources], labels: await labels(page) });
  const png = (await page.screenshot()).toString("base64");
  const canvas = await browser.newPage();
  const webp = await canvas.evaluate(async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const drawn = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    drawn.getContext("2d").drawImage(image, 0, 0);
    // At quality 1, Chromium encodes without loss.
    return drawn.toDataURL("image/webp", 1).split(",")[1];
  }, png);
  await canvas.close();
  const path = new URL(`${name}.webp`, folder).pathname;
  await writeFile(path, Buffer.from(webp, "base64"));
  console.log(path);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
try {
  const { origin } = new URL(address);
  const first = await browser.newContext();
  const entering = await first.newPage();
  await entering.goto(address);
  await entering.getByRole("navigation", { name: "Tocsin" }).waitFor();
  const storageState = await first.storageState();
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ storageState, colorScheme, viewport: { width: 1440, height: 900 } });
    await page.goto(`${origin}/inbox?fold=none`);
    // Of an exchange that failed: an alert of a window rule has no stack.
    await page.locator("[data-alert]").filter({ hasText: "Exception" }).first().click();
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    await page.getByText("Delivered").first().waitFor();
    await page.getByText(/^Median /).waitFor();
    await keep(`inbox-${colorScheme}`, page, ["inbox"]);
    await page.close();
    const editor = await browser.newPage({ storageState, colorScheme, viewport: { width: 1440, height: 1100 } });
    await editor.goto(`${origin}/rules`);
    await editor.getByRole("link", { name: "Slow payment" }).first().click();
    await editor.getByRole("link", { name: "Edit" }).click();
    await editor.getByText(/this would have raised/).waitFor();
    // The message follows the newest exchange that the preview has found.
    const preview = editor.getByRole("complementary", { name: "Preview" });
    await preview.getByLabel("About").locator("option:checked", { hasText: " · " }).waitFor({ state: "attached" });
    await preview.locator('[aria-busy="true"]').first().waitFor({ state: "detached" });
    if (await preview.locator('[class*="warn"]').count()) {
      throw new Error("The preview has a warning, as after hours of demo traffic: make run ARGS=--reset starts again.");
    }
    await keep(`rule-${colorScheme}`, editor, ["rules"]);
    await editor.close();
  }
  await writeFile(new URL("labels.json", folder), JSON.stringify(pictures));
} finally {
  await browser.close();
}
