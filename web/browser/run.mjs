// Runs the browser tests: every file, or those that are named. Three run at once, because pages wait two thirds of their
// time. What measures how long tasks take runs by itself.
//
// Machines of the continuous integration are busy with others' work as well, so there a file in which a test failed is run
// once more by itself. What passes then is named: it is to be repaired.
import { readdirSync } from "node:fs";
import { relative } from "node:path";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const named = process.argv.slice(2);
const files = named.length > 0 ? named : readdirSync(folder).filter((name) => name.endsWith(".test.mjs"));
/** What takes longest begins first, so that no processor is idle at the end. */
const longest = ["pages.test.mjs", "shapes.test.mjs", "people.test.mjs"];
const measuring = ["storm.test.mjs"];

/** Runs files and returns those in which something failed. */
async function failing(paths, concurrency) {
  const failed = new Set();
  if (paths.length === 0) return [];
  const events = run({ files: paths, concurrency });
  events.on("test:fail", ({ file }) => failed.add(file));
  const report = events.compose(spec);
  report.pipe(process.stdout, { end: false });
  await finished(report);
  return [...failed];
}

const path = (name) => (name.includes("/") ? name : folder + name);
const first = longest.filter((name) => files.includes(name));
const others = files.filter((name) => !first.includes(name) && !measuring.includes(name));
const failed = [
  ...(await failing([...first, ...others].map(path), 3)),
  ...(await failing(files.filter((name) => measuring.includes(name)).map(path), 1)),
];
process.exitCode = failed.length > 0 ? 1 : 0;
if (failed.length > 0 && process.env.CI === "true") {
  const names = failed.map((file) => relative(folder, file)).join(", ");
  console.log(`Trying again: ${names}`);
  process.exitCode = (await failing(failed, 1)).length > 0 ? 1 : 0;
  if (process.exitCode === 0) console.log(`UNSTABLE: passed by themselves: ${names}`);
}
