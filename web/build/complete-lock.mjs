// npm leaves the packages of other platforms out of package-lock.json when the registry at hand does not hold them, and
// then `npm ci` refuses the lock file that `npm install` has written. This adds the missing entries, with
// the version that their parent pins, so that one lock file serves every platform. Run it after each change of a
// dependency; it changes nothing when nothing is missing.
import { readFileSync, writeFileSync } from "node:fs";

const path = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(path, "utf8"));

const known = {
  os: ["android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "win32"],
  cpu: ["arm", "arm64", "ia32", "ppc64", "riscv64", "s390x", "x64"],
};

for (const [parentPath, parent] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] || lock.packages[`${parentPath}/${key}`]) continue;
    const words = name.split(/[-/]/);
    const entry = { version, cpu: [], ...(parent.dev ? { dev: true } : {}), optional: true, os: [] };
    for (const field of ["os", "cpu"]) {
      entry[field] = known[field].filter((word) => words.includes(word));
      if (entry[field].length !== 1) throw new Error(`${name}: its name does not say its ${field}`);
    }
    if (words.includes("musl")) entry.libc = ["musl"];
    lock.packages[key] = entry;
  }
}

const root = lock.packages[""];
const sorted = Object.entries(lock.packages)
  .filter(([key]) => key !== "")
  .sort(([a], [b]) => a.localeCompare(b, "en"));
lock.packages = Object.fromEntries([["", root], ...sorted]);
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
