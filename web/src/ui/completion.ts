import type { Variable } from "./variables";

/** The name that is being typed: where it begins and ends, and its part before the caret. */
export interface Open {
  from: number;
  to: number;
  typed: string;
}

/** The name at the caret, between open braces; undefined if the caret is in plain text. */
export function openAt(text: string, caret: number): Open | undefined {
  const before = /\{\{\{?[#^/&]?\s*([^\s{}"]*)$/.exec(text.slice(0, caret));
  if (!before) return undefined;
  const typed = before[1] ?? "";
  const after = /^[^\s{}"]*/.exec(text.slice(caret))?.[0] ?? "";
  return { from: caret - typed.length, to: caret + after.length, typed };
}

const mostOffered = 8;

/** The possible variables: those that begin with the text first, then those that contain it. */
export function offers(variables: readonly Variable[], typed: string): Variable[] {
  const wanted = typed.toLowerCase();
  const rank = ({ name }: Variable) => {
    const at = name.toLowerCase().indexOf(wanted);
    return at < 0 ? 2 : at > 0 ? 1 : 0;
  };
  return variables
    .filter((variable) => rank(variable) < 2 && variable.name !== typed)
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, mostOffered);
}

/** The text after a name was inserted for the one being typed, with closed braces, and the caret after them. */
export function complete(text: string, open: Open, name: string): { text: string; caret: number } {
  const braces = text.slice(0, open.from).match(/(\{+)[#^/&]?\s*$/)?.[1]?.length === 3 ? "}}}" : "}}";
  const rest = text.slice(open.to);
  const closed = rest.match(/^\s*\}{2,3}/)?.[0];
  const head = text.slice(0, open.from) + name + (closed ?? braces);
  return { text: head + rest.slice(closed?.length ?? 0), caret: head.length };
}

export interface Piece {
  text: string;
  look: "plain" | "tag" | "wrong";
}

/** Splits a template into plain text and tags; the tag at the place of an API error is wrong. */
export function pieces(template: string, complaint: string | undefined): Piece[] {
  const wrongAt = complaint === undefined ? -1 : placeOf(template, complaint);
  const found: Piece[] = [];
  let at = 0;
  for (const match of template.matchAll(/\{\{\{.*?\}\}\}|\{\{.*?\}\}|\{\{[^\n]*/gs)) {
    if (match.index > at) found.push({ text: template.slice(at, match.index), look: "plain" });
    found.push({ text: match[0], look: match.index === wrongAt ? "wrong" : "tag" });
    at = match.index + match[0].length;
  }
  if (at < template.length) found.push({ text: template.slice(at), look: "plain" });
  return found;
}

/** The place in "… (line 2, column 5)", counted from 0; columns count characters. -1 if there is no place. */
export function placeOf(template: string, complaint: string): number {
  const place = /\(line (\d+), column (\d+)\)/.exec(complaint);
  if (!place) return -1;
  const lines = template.split("\n");
  const line = Number(place[1]) - 1;
  const before = lines.slice(0, line).reduce((length, text) => length + text.length + 1, 0);
  return before + [...(lines[line] ?? "")].slice(0, Number(place[2]) - 1).join("").length;
}
