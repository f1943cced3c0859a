import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { fontLicenses } from "./build/font-licenses.ts";
import { pageLinks } from "./build/page-links.ts";
import { precompress } from "./build/precompress.ts";

const licenses = "licenses.txt";
/** Tests that need modules which nothing has loaded yet. */
const alone = ["src/app/chunk/lazyPage.test.tsx"];
const fonts = ["@fontsource-variable/inter", "@fontsource-variable/jetbrains-mono"];

export default defineConfig({
  plugins: [react(), fontLicenses(licenses, fonts), pageLinks("links.json"), precompress()],
  build: {
    target: "es2023",
    // A file that is part of the bundle keeps the policy "no script and no font but our own" simple.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // What pages share comes in few files: each costs as much in headers as a small module has code.
          groups: [{ name: "shared", test: /\/src\/(api|ui\/(?!plot)|drafts|frame)|@tabler\//, minShareCount: 2 }],
        },
      },
    },
    // What is in the bundle keeps its authors' terms with it.
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
    // A bound for what hangs, not for what a busy machine does slowly.
    testTimeout: 30_000,
    // Machines of the continuous integration are busy with others' work as well. What passes at its second try is shown.
    retry: process.env.CI === "true" ? 1 : 0,
    css: false,
  },
});
