import type { AlertGroup, Rule, Severity } from "../api/client";
import { sum } from "../ui/words";

export const sortKeys = ["name", "severity", "open", "hour", "lag"] as const;
export type SortKey = (typeof sortKeys)[number];

/** How the address bar writes what the list shows; what is at its default is left out. */
export interface RulesSearch {
  q?: string;
  sort?: Exclude<SortKey, "name">;
  /** The other way round than the column usually sorts. */
  reverse?: "yes";
}

const longest = 200;

/** Reads an address that anybody may have typed: what makes no sense is left out. */
export function parseRulesSearch(raw: Record<string, unknown>): RulesSearch {
  const search: RulesSearch = {};
  if (typeof raw.q === "string" && raw.q !== "") search.q = raw.q.slice(0, longest);
  const sort = sortKeys.find((key) => key === raw.sort);
  if (sort && sort !== "name") search.sort = sort;
  if (raw.reverse === "yes") search.reverse = "yes";
  return search;
}

/** What is known about rules beside their definitions; undefined while it is not. */
export interface Facts {
  open: ReadonlyMap<string | undefined, AlertGroup> | undefined;
  /** Alerts by minute of the last hour. */
  raised: ReadonlyMap<string, readonly number[]>;
  /** A rule in plain words. */
  said: (rule: Rule) => string;
}

/** The rules in whose name or sentence every word of a text stands, case ignored. */
export function found(rules: readonly Rule[], q: string, { said }: Facts): readonly Rule[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rules;
  return rules.filter((rule) => {
    const text = `${rule.name} ${said(rule)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const ranks: Record<Severity, number> = { CRITICAL: 2, WARNING: 1, INFO: 0 };

/** What a rule is sorted by, the greatest first. A rule that cannot be evaluated is the farthest behind, a disabled one the least. */
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

/** The rules in order: by name from A to Z, by anything else the most first, and those alike by name. */
export function sorted(rules: readonly Rule[], by: SortKey, reverse: boolean, facts: Facts): readonly Rule[] {
  const turn = reverse ? -1 : 1;
  const byName = (a: Rule, b: Rule) => a.name.localeCompare(b.name, "en");
  return [...rules].sort((a, b) => {
    if (by === "name") return turn * byName(a, b);
    const [x, y] = [weight(a, by, facts), weight(b, by, facts)];
    return x === y ? byName(a, b) : turn * (y > x ? 1 : -1);
  });
}

/** What a press on the head of a column asks for: the same column once more is the other way round. */
export function nextSort(search: RulesSearch, by: SortKey): RulesSearch {
  const { sort, reverse, ...rest } = search;
  const same = (sort ?? "name") === by;
  return parseRulesSearch({ ...rest, sort: by, ...(same && !reverse ? { reverse: "yes" } : {}) });
}
