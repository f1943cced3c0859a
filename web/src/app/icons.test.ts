import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** The width and height in the first chunk of a PNG. */
function sizeOf(path: string): string {
  const png = readFileSync(path);
  expect(png.subarray(1, 4).toString("latin1")).toBe("PNG");
  return `${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`;
}

test("the application can be put on a home screen: each icon is there, in the size that is said", () => {
  const { icons } = JSON.parse(readFileSync("public/manifest.webmanifest", "utf8")) as {
    icons: { src: string; sizes: string; type: string; purpose: string }[];
  };
  for (const { src, sizes, type } of icons) {
    if (type === "image/png") expect(sizeOf(`public${src}`)).toBe(sizes);
    else expect(existsSync(`public${src}`)).toBe(true);
  }
  // What Chromium requires before it offers to install the application.
  expect(icons.map(({ sizes, purpose }) => `${sizes} ${purpose}`)).toContain("512x512 any");
  expect(icons.map(({ sizes }) => sizes)).toContain("192x192");
});

test("iOS, which reads no icon of the manifest, has one of its own", () => {
  const [, icon] = /<link rel="apple-touch-icon" href="([^"]+)"/.exec(readFileSync("index.html", "utf8")) ?? [];
  expect(icon).toBe("/apple-touch-icon.png");
  expect(sizeOf(`public${icon}`)).toBe("180x180");
});
