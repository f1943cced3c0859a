import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { expect, test } from "vitest";

/** Each folder may import those before it. `app` puts everything together. */
const layers = [
  "api",
  "ui",
  "drafts",
  "frame",
  "access",
  "inbox",
  "webhooks",
  "deliveries",
  "rules",
  "silences",
  "routing",
  "system",
  "app",
];

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter(
  (file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$/.test(file) && !file.startsWith("test/"),
);

test("a folder imports only the folders below it", () => {
  const wrong = files.flatMap((file) => {
    const from = layers.indexOf(file.split("/")[0] ?? "");
    const text = readFileSync(join("src", file), "utf8");
    return [...text.matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)]
      .map(([, target = ""]) => normalize(join(file, "..", target)))
      .filter((target) => from >= 0 && layers.indexOf(target.split("/")[0] ?? "") > from)
      .map((target) => `${file} imports ${target}`);
  });
  expect(files.length).toBeGreaterThan(100);
  expect(wrong).toEqual([]);
});

test("only src/api speaks HTTP, by whatever name", () => {
  // The lint rule sees the global names alone, not those that are read from the window.
  const speaks = /\b(?:globalThis|window|self)\s*\.\s*(?:fetch|EventSource|WebSocket|XMLHttpRequest)\b|\bsendBeacon\b/;
  expect(speaks.test("globalThis.fetch(request)")).toBe(true);
  const wrong = files.filter(
    (file) => !file.startsWith("api/") && speaks.test(readFileSync(join("src", file), "utf8")),
  );
  expect(wrong).toEqual([]);
});

test("a component of the library comes with its styles", () => {
  const base = readFileSync("src/ui/base.css", "utf8");
  const used = files.flatMap((file) => {
    const text = readFileSync(join("src", file), "utf8");
    return [...text.matchAll(/import \{([^}]*)\} from "@mantine\/core"/g)].flatMap(([, names = ""]) =>
      names.split(",").map((name) => name.trim()),
    );
  });
  const styled = [...new Set(used)].filter((name) => existsSync(`node_modules/@mantine/core/styles/${name}.layer.css`));
  expect(styled).toContain("Checkbox");
  expect(styled.filter((name) => !base.includes(`styles/${name}.layer.css`))).toEqual([]);
});
