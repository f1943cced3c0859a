import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { alertsWord, counted, decimal, listed, number, plural } from "./words";

test("numbers are grouped, and nouns agree with them", () => {
  expect(number(1234567)).toBe("1,234,567");
  expect(decimal(1234, 1)).toBe("1,234.0");
  expect(decimal(0.05, 2)).toBe("0.05");
  expect([0, 1, 2, 1000].map(alertsWord)).toEqual(["0 alerts", "1 alert", "2 alerts", "1,000 alerts"]);
  expect(counted(2, "entry", "entries")).toBe("2 entries");
  expect(plural(1, "matches", "match")).toBe("matches");
  expect(plural(2, "matches", "match")).toBe("match");
});

test("lists end with a conjunction", () => {
  expect([[], ["a"], ["a", "b"], ["a", "b", "c"]].map((words) => listed(words))).toEqual([
    "",
    "a",
    "a and b",
    "a, b and c",
  ]);
  expect(listed(["a", "b"], "or")).toBe("a or b");
});

const nouns = [
  ...[
    "alert",
    "attempt",
    "delivery",
    "deliverie",
    "exchange",
    "filter",
    "frame",
    "issue",
    "match",
    "message",
    "minute",
  ],
  ...["note", "replica", "row", "route", "rule", "silence", "time", "token", "user", "view", "webhook"],
].join("|");

/** What files other than words.ts and time.ts would contain if a language were added. */
const knowsTheLanguage: readonly [what: string, pattern: RegExp][] = [
  ["a number's format", /\btoLocaleString\(|\bIntl\.(?:NumberFormat|PluralRules|ListFormat)\b|\.toFixed\(/],
  ["a plural", /=== 1 \? ?["`]|!== 1 \? ?["`]|> 1 \? ?["`]s["`]/],
  [
    "a number before a noun, in a text",
    new RegExp(`\\$\\{(?![^}]*\\b(?:number|counted)\\(|[^}]*\\?)[^}]*\\} (?:${nouns})s?\\b`),
  ],
  ["a number before a noun, in markup", new RegExp(`\\{[\\w.]*(?:count|length|size|total)\\} (?:${nouns})s?\\b`)],
];

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter(
  (file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$|\.gen\.ts$/.test(file) && !file.startsWith("test/"),
);

/** The lines of a file with something that belongs in words.ts. */
function found(file: string): string[] {
  if (file === "ui/words.ts") return [];
  return readFileSync(join("src", file), "utf8")
    .split("\n")
    .flatMap((line, at) =>
      knowsTheLanguage
        .filter(([, pattern]) => pattern.test(line))
        .map(([what]) => `${file}:${at + 1}: ${what}: ${line.trim()}`),
    );
}

test("no other file knows how numbers, plurals and counted nouns are written", () => {
  expect(files.length).toBeGreaterThan(100);
  expect(files.flatMap(found)).toEqual([]);
});

test("the search finds what it is for", () => {
  const bad = [
    "total.toLocaleString()",
    'count === 1 ? "alert" : "alerts"',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what a source says.
    "`${rest} alerts`",
    "{items.length} rules",
    "share.toFixed(1)",
  ];
  expect(bad.filter((line) => !knowsTheLanguage.some(([, pattern]) => pattern.test(line)))).toEqual([]);
});
