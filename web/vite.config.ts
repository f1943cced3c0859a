import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { precompress } from "./build/precompress.ts";

export default defineConfig({
  plugins: [react(), precompress()],
  build: {
    target: "es2023",
    // A file that is part of the bundle keeps the policy "no script and no font but our own" simple.
    assetsInlineLimit: 0,
    reportCompressedSize: true,
  },
  server: {
    // The development server serves the sources; a running Tocsin answers the API.
    proxy: { "/api": { target: process.env.TOCSIN_URL ?? "http://127.0.0.1:8080" } },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/test/setup.ts"],
    restoreMocks: true,
    css: false,
  },
});
