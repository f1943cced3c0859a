import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { fontLicenses } from "./build/font-licenses.ts";
import { pageLinks } from "./build/page-links.ts";
import { precompress } from "./build/precompress.ts";

const licenses = "licenses.txt";
/** Tests that need modules which nothing has loaded yet. */
const alone = ["src/app/chunk/lazyPage.test.tsx", "src/ui/InstantInput.test.tsx"];
const fonts = ["@fontsource-variable/inter", "@fontsource-variable/jetbrains-mono"];

export default defineConfig({
  plugins: [react(), fontLicenses(licenses, fonts), pageLinks("links.json"), precompress()],
  build: {
    target: "es2023",
    // Files in the bundle keep the policy "only our own scripts and fonts" simple.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // Code that pages share is in few files: the headers of a file cost as much as the code
          // of a small module.
          groups: [{ name: "shared", test: /\/src\/(api|ui\/(?!plot)|drafts|frame)|@tabler\//, minShareCount: 2 }],
        },
      },
    },
    // The bundle contains the licences of its parts.
    license: { fileName: licenses },
  },
  server: {
    // The development server serves the sources; a running Tocsin answers the API.
    proxy: { "/api": { target: process.env.TOCSIN_URL ?? "http://127.0.0.1:8080" } },
  },
  test: {
    environment: "happy-dom",
    // Every processor has a worker. The files that a worker takes share what they import, which is most of what a file
    // costs; setup.ts puts back what a file has changed.
    maxWorkers: "100%",
    projects: [
      {
        extends: true,
        test: { name: "shared", isolate: false, include: ["src/**/*.test.{ts,tsx}"], exclude: alone },
      },
      { extends: true, test: { name: "alone", include: alone } },
    ],
    setupFiles: ["src/test/setup.ts"],
    restoreMocks: true,
    // A bound for tests that hang, not for those that are slow on a busy machine: three seconds may become forty there.
    testTimeout: 120_000,
    // Machines of the continuous integration also do other work. A test that passes at its second
    // try is reported.
    retry: process.env.CI === "true" ? 1 : 0,
    css: false,
  },
});
