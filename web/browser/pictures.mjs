// Takes the pictures of the README from a Tocsin that runs, such as the one of `make run`:
//
//   node browser/pictures.mjs http://127.0.0.1:PORT/sign-in#…
//
// The link that `make run` prints signs in once.
import { mkdir } from "node:fs/promises";
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
    await page.goto(`${origin}/inbox`);
    await page.locator("[data-alert]").first().click();
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    await page.getByText("Delivered").first().waitFor();
    const path = new URL(`inbox-${colorScheme}.png`, folder).pathname;
    await page.screenshot({ path });
    console.log(path);
    await page.close();
    const editor = await browser.newPage({ storageState, colorScheme, viewport: { width: 1440, height: 1100 } });
    await editor.goto(`${origin}/rules`);
    await editor.getByRole("link", { name: "Integration failed" }).first().click();
    await editor.getByText(/this would have raised/).waitFor();
    // The message follows the newest exchange that the preview has found.
    const preview = editor.getByRole("complementary", { name: "Preview" });
    await preview.getByLabel("About").locator("option:checked", { hasText: " · " }).waitFor({ state: "attached" });
    await preview.locator('[aria-busy="true"]').first().waitFor({ state: "detached" });
    const rule = new URL(`rule-${colorScheme}.png`, folder).pathname;
    await editor.screenshot({ path: rule });
    console.log(rule);
    await editor.close();
  }
} finally {
  await browser.close();
}
