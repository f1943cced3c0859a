import diff from "microdiff";

/** A difference at one place of two values. */
export interface Difference {
  /** The path to the place: ["scope", "applications"]. */
  path: readonly string[];
  was: unknown;
  is: unknown;
  /** For a list of words, instead of `was` and `is`: what was added and what was removed. */
  added?: readonly string[];
  removed?: readonly string[];
}

type Tree = { [name: string]: unknown };

/** A list of words is a set: its order does not matter. */
class Words {
  readonly [word: string]: true;
  constructor(list: readonly string[]) {
    const own = this as { [word: string]: true };
    for (const word of list) own[word] = true;
  }
}

const isWords = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

/** The same, with each list of words as a set, and other lists as one value. */
function plain(value: unknown): unknown {
  if (isWords(value)) return new Words(value);
  if (Array.isArray(value)) return JSON.stringify(value);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
  }
  return value;
}

function at(tree: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (inner as Tree | undefined)?.[name], tree);
}

/** The places in which two objects differ, ordered by name. Absent and null are the same. */
export function differencesOf(before: object, after: object): Difference[] {
  const [was, is] = [plain(before), plain(after)] as [Tree, Tree];
  const places = new Map<string, Difference>();
  for (const { path: steps } of diff(was, is)) {
    const names = steps.map(String);
    const path = placeOf(names, was, is);
    const key = path.join(".");
    if (places.has(key)) continue;
    const [a, b] = [at(before, path) ?? null, at(after, path) ?? null];
    if (JSON.stringify(a) === JSON.stringify(b)) continue;
    const one: Difference = { path, was: a, is: b };
    if ((isWords(a) || a === null) && (isWords(b) || b === null) && (isWords(a) || isWords(b))) {
      one.added = (b ?? []).filter((word) => !(a ?? []).includes(word));
      one.removed = (a ?? []).filter((word) => !(b ?? []).includes(word));
    }
    places.set(key, one);
  }
  return [...places.values()].sort((a, b) => (a.path.join(".") < b.path.join(".") ? -1 : 1));
}

/** The place at which a difference is shown: for a list of words, the whole list. */
function placeOf(names: readonly string[], was: Tree, is: Tree): readonly string[] {
  for (let depth = 1; depth < names.length; depth++) {
    const path = names.slice(0, depth);
    if (at(was, path) instanceof Words || at(is, path) instanceof Words) return path;
  }
  return names;
}

/**
 * Two texts for comparison. Of texts with many lines, only those from the first to the last that
 * differ, with one line around them and … for the others.
 */
export function unlike(one: string, other: string): [string, string] {
  const [a, b] = [one.split("\n"), other.split("\n")];
  if (Math.max(a.length, b.length) < 4) return [one, other];
  const most = Math.min(a.length, b.length);
  let head = 0;
  while (head < most && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < most - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const [from, rest] = [Math.max(0, head - 1), Math.max(0, tail - 1)];
  const cut = (lines: string[]) =>
    [...(from > 0 ? ["…"] : []), ...lines.slice(from, lines.length - rest), ...(rest > 0 ? ["…"] : [])].join("\n");
  return [cut(a), cut(b)];
}
