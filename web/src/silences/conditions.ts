import type { AttributeMatch } from "../api/client";

type Op = AttributeMatch["op"];

/** The text of an operator, and its text with "not". */
const signs: readonly [sign: string, op: Op, not: boolean][] = [
  ["!=", "EQUALS", true],
  ["!~", "MATCHES", true],
  [">=", "AT_LEAST", false],
  ["<=", "AT_MOST", false],
  ["=", "EQUALS", false],
  ["~", "MATCHES", false],
  [">", "GREATER_THAN", false],
  ["<", "LESS_THAN", false],
];

/** A key that needs no quotes. */
const key = String.raw`([^\s=!~<>{]+)`;
const compared = new RegExp(`^${key}\\s*(!=|!~|>=|<=|=|~|>|<)\\s*(.*)$`, "u");
const existing = new RegExp(`^${key}\\s+(not\\s+)?exists$`, "iu");
const listed = new RegExp(`^${key}\\s+(not\\s+)?in\\s+(.*)$`, "iu");

/**
 * Parses a condition on one line: `team = orders`, `team != orders`, `tier >= 2`, `host ~ ^db`,
 * `team exists`, `team not in a, b`. Conditions that cannot be written in this form are the API's
 * JSON. Anything else returns undefined.
 */
export function parseCondition(line: string): AttributeMatch | undefined {
  const text = line.trim();
  if (text.startsWith("{")) {
    try {
      return JSON.parse(text) as AttributeMatch;
    } catch {
      return undefined;
    }
  }
  const exists = existing.exec(text);
  if (exists) return { key: exists[1] ?? "", op: "EXISTS", ...(exists[2] ? { not: true } : {}) };
  const isIn = listed.exec(text);
  if (isIn) {
    const values = (isIn[3] ?? "")
      .split(",")
      .map((value) => value.trim())
      .filter(Boolean);
    return { key: isIn[1] ?? "", op: "IN", values, ...(isIn[2] ? { not: true } : {}) };
  }
  const found = compared.exec(text);
  if (!found) return undefined;
  const [, name = "", sign, value = ""] = found;
  const [, op = "EQUALS", not = false] = signs.find(([one]) => one === sign) ?? [];
  return { key: name, op, ...(not ? { not } : {}), value };
}

/** Writes a condition so that {@link parseCondition} returns the same. */
export function conditionLine(condition: AttributeMatch): string {
  const { key: name, op, not = false, value = "", values = [] } = condition;
  const word = not ? "not " : "";
  let line = "";
  if (op === "EXISTS") line = `${name} ${word}exists`;
  else if (op === "IN") line = `${name} ${word}in ${values.join(", ")}`;
  else {
    const sign = signs.find(([, one, turned]) => one === op && turned === not)?.[0];
    if (sign !== undefined) line = `${name} ${sign} ${value}`.trimEnd();
  }
  const read = line === "" || /[\r\n]/.test(line) ? undefined : parseCondition(line);
  return read && same(read, condition) ? line : JSON.stringify(condition);
}

function same(a: AttributeMatch, b: AttributeMatch): boolean {
  const whole = ({ key: name, op, not = false, value = "", values = [] }: AttributeMatch) =>
    JSON.stringify([name, op, not, value, values]);
  return whole(a) === whole(b);
}

/** Parses one condition per line, and returns the invalid lines. */
export function parseConditions(text: string): { conditions: AttributeMatch[]; wrong: string[] } {
  const conditions: AttributeMatch[] = [];
  const wrong: string[] = [];
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const condition = parseCondition(line);
    if (condition) conditions.push(condition);
    else wrong.push(line.trim());
  }
  return { conditions, wrong };
}
