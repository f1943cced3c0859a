// Takes the pictures of the README from a Tocsin that runs, such as the one of `make run`:
//
//   node browser/pictures.mjs http://127.0.0.1:PORT/sign-in#…
//
// The link that `make run` prints signs in once.
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

/** Writes what a page shows as WebP without loss, about half the size of the PNG. */
async function keep(name, page) {
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
    await page.locator("[data-alert]").first().click();
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    await page.getByText("Delivered").first().waitFor();
    await page.getByText(/^Median /).waitFor();
    await keep(`inbox-${colorScheme}`, page);
    await page.close();
    const editor = await browser.newPage({ storageState, colorScheme, viewport: { width: 1440, height: 1100 } });
    await editor.goto(`${origin}/rules`);
    await editor.getByRole("link", { name: "Integration failed" }).first().click();
    await editor.getByRole("link", { name: "Edit" }).click();
    await editor.getByText(/this would have raised/).waitFor();
    // The message follows the newest exchange that the preview has found.
    const preview = editor.getByRole("complementary", { name: "Preview" });
    await preview.getByLabel("About").locator("option:checked", { hasText: " · " }).waitFor({ state: "attached" });
    await preview.locator('[aria-busy="true"]').first().waitFor({ state: "detached" });
    await keep(`rule-${colorScheme}`, editor);
    await editor.close();
  }
} finally {
  await browser.close();
}
