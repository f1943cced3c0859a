// Draws the icons that systems want as pictures from public/favicon.svg (make icons). They reach to the edges: each system
// cuts its own corners.
import { readFile, writeFile } from "node:fs/promises";
import { chromium } from "playwright-core";

const folder = new URL("../public/", import.meta.url);
const drawing = (await readFile(new URL("favicon.svg", folder), "utf8")).replace(' rx="7"', "");
const icons = { "apple-touch-icon.png": 180, "icon-192.png": 192, "icon-512.png": 512 };

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
try {
  for (const [name, size] of Object.entries(icons)) {
    const page = await browser.newPage({ viewport: { width: size, height: size } });
    await page.setContent(`<style>body { margin: 0 } svg { display: block; width: 100vw }</style>${drawing}`);
    await writeFile(new URL(name, folder), await page.screenshot());
    await page.close();
    console.log(name);
  }
} finally {
  await browser.close();
}
