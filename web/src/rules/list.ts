import type { AlertGroup, Rule, Severity } from "../api/client";
import { sum } from "../ui/words";

export const sortKeys = ["name", "severity", "open", "hour", "lag"] as const;
export type SortKey = (typeof sortKeys)[number];

/** The form of the list's options in the address; defaults are left out. */
export interface RulesSearch {
  q?: string;
  sort?: Exclude<SortKey, "name">;
  /** The opposite of the column's usual order. */
  reverse?: "yes";
}

/** The most characters of a search. */
export const longest = 200;

/** Parses an address that may have been typed: invalid parts are ignored. */
export function parseRulesSearch(raw: Record<string, unknown>): RulesSearch {
  const search: RulesSearch = {};
  if (typeof raw.q === "string" && raw.q !== "") search.q = raw.q.slice(0, longest);
  const sort = sortKeys.find((key) => key === raw.sort);
  if (sort && sort !== "name") search.sort = sort;
  if (raw.reverse === "yes") search.reverse = "yes";
  return search;
}

/** What is known about rules in addition to their definitions; undefined while it is unknown. */
export interface Facts {
  open: ReadonlyMap<string | undefined, AlertGroup> | undefined;
  /** Alerts by minute of the last hour. */
  raised: ReadonlyMap<string, readonly number[]>;
  /** A rule in plain words. */
  said: (rule: Rule) => string;
}

/** The rules whose name or sentence contains every word of a text, ignoring case. */
export function found(rules: readonly Rule[], q: string, { said }: Facts): readonly Rule[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rules;
  return rules.filter((rule) => {
    const text = `${rule.name} ${said(rule)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const ranks: Record<Severity, number> = { CRITICAL: 2, WARNING: 1, INFO: 0 };

/**
 * The value that a rule is sorted by, greatest first. A rule that cannot be evaluated is furthest
 * behind, a disabled one least.
 */
function weight(rule: Rule, by: Exclude<SortKey, "name">, { open, raised }: Facts): number {
  switch (by) {
    case "severity":
      return ranks[rule.severity];
    case "open": {
      const group = open?.get(rule.id);
      return group ? group.firing + group.acknowledged : 0;
    }
    case "hour":
      return sum(raised.get(rule.id) ?? []);
    case "lag":
      if (!rule.enabled) return -1;
      return rule.health?.lastError ? Number.POSITIVE_INFINITY : (rule.health?.lagSeconds ?? 0);
  }
}

/** The rules in order: by name from A to Z, by other columns with the largest first, and equal ones by name. */
export function sorted(rules: readonly Rule[], by: SortKey, reverse: boolean, facts: Facts): readonly Rule[] {
  const turn = reverse ? -1 : 1;
  const byName = (a: Rule, b: Rule) => a.name.localeCompare(b.name, "en");
  return [...rules].sort((a, b) => {
    if (by === "name") return turn * byName(a, b);
    const [x, y] = [weight(a, by, facts), weight(b, by, facts)];
    return x === y ? byName(a, b) : turn * (y > x ? 1 : -1);
  });
}

/** The order after a press on the header of a column: pressing the same column again reverses it. */
export function nextSort(search: RulesSearch, by: SortKey): RulesSearch {
  const { sort, reverse, ...rest } = search;
  const same = (sort ?? "name") === by;
  return parseRulesSearch({ ...rest, sort: by, ...(same && !reverse ? { reverse: "yes" } : {}) });
}

/** More are shown to reach the one that the address names; beyond, the page would be slow. */
const mostForOne = 1_000;

/** How many of the rules are shown: so many, or as far as the one that the address names. */
export function downTo(rules: readonly Pick<Rule, "id">[], most: number, named: string): number {
  const at = rules.findIndex(({ id }) => id === named);
  return at < mostForOne ? Math.max(most, at + 1) : most;
}
