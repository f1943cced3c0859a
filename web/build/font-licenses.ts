import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

/**
 * Adds the fonts' licences to the file that Vite writes for the scripts. Vite does not see fonts,
 * because style sheets load them.
 */
export function fontLicenses(file: string, packages: readonly string[]): Plugin {
  let outDir = "";
  return {
    name: "font-licenses",
    apply: "build",
    configResolved(config) {
      outDir = config.build.outDir;
    },
    closeBundle() {
      for (const name of packages) {
        const license = readFileSync(join("node_modules", name, "LICENSE"), "utf8");
        appendFileSync(join(outDir, file), `\n## ${name}\n\n${license}`);
      }
    },
  };
}
