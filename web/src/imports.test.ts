import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { expect, test } from "vitest";

/** Each folder may import those before it. `app` combines everything. */
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
  // The lint rule only sees global names, not those that are read from the window. Elsewhere, the words themselves have no use.
  const speaks = /\b(?:fetch|EventSource|WebSocket|XMLHttpRequest|sendBeacon)\b/;
  // A name that is put together cannot be searched.
  const computed =
    /\b(?:globalThis|window|self|navigator|defaultView|frames)\b[!)]*(?:\s+as\s[^)]*\))?\s*(?:\?\.\s*)?\[/;
  const wrong = (text: string) => speaks.test(text) || computed.test(text);
  for (const text of [
    "globalThis.fetch(request)",
    "const { fetch } = globalThis;",
    "const { fetch: call } = window;",
    'globalThis["fetch"](request)',
    'globalThis["fet" + "ch"](request)',
    "window?.[name](request)",
    "(self as Named)[name](request)",
    "new window.EventSource(url)",
    "navigator.sendBeacon(url)",
  ]) {
    expect(wrong(text), text).toBe(true);
  }
  expect(wrong("void refetch(); list.fetchNextPage(); cache.prefetchQuery(one)")).toBe(false);
  expect(files.filter((file) => !file.startsWith("api/") && wrong(readFileSync(join("src", file), "utf8")))).toEqual(
    [],
  );
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
