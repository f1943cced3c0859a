import type { RuleDefinition } from "../api/client";

type Filter = NonNullable<RuleDefinition["filter"]>;
export type AttributeMatch = NonNullable<Filter["attributes"]>[number];

/** The comparisons of an attribute, in the order in which the API names them. */
export const comparisons = [
  "EQUALS",
  "IN",
  "EXISTS",
  "MATCHES",
  "GREATER_THAN",
  "AT_LEAST",
  "LESS_THAN",
  "AT_MOST",
] as const satisfies readonly AttributeMatch["op"][];

/** Whether a comparison is one of numbers. */
export function numeric(op: AttributeMatch["op"]): boolean {
  return comparisons.indexOf(op) >= comparisons.indexOf("GREATER_THAN");
}

const number = /^([+-]?)(?:([0-9]{1,18})(?:\.([0-9]{0,18}))?|\.([0-9]{1,18}))(?:[eE]([+-]?(?:0?[0-9]|1[0-8])))?$/;

/** The number that a text is, times 10^36, by which every number that the API takes is whole; undefined of what is none. */
export function numberOf(text: string): bigint | undefined {
  const found = number.exec(text);
  if (!found) return undefined;
  const [, sign, whole = "0", decimals = found[4] ?? "", , exponent = "0"] = found;
  const digits = BigInt(whole + decimals) * 10n ** BigInt(36 + Number(exponent) - decimals.length);
  return sign === "-" ? -digits : digits;
}

/** Whether exclusions leave none of some names, each of which may have wildcards; no name stands for all. */
export function excludesAll(some: readonly string[], others: readonly string[]): boolean {
  const names = some.length > 0 ? some : ["*"];
  return others.length > 0 && names.every((name) => others.some(standsFor(name)));
}

/** Whether a text with wildcards stands for a name. A wildcard stands for those of the name, too. */
export function standsFor(name: string) {
  const literally = (text: string) => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  return (text: string) => new RegExp(`^${text.split("*").map(literally).join(".*")}$`, "s").test(name);
}

/** Whether a value meets a condition, without its "not"; expressions the API alone compares. */
function holds({ op, value: limit = "", values = [] }: AttributeMatch, value: string): boolean | undefined {
  if (op === "EXISTS") return true;
  if (op === "EQUALS") return value === limit;
  if (op === "IN") return values.includes(value);
  if (op === "MATCHES") return undefined;
  const [is, bound] = [numberOf(value), numberOf(limit)];
  if (bound === undefined) return undefined;
  if (is === undefined) return false;
  if (op === "GREATER_THAN") return is > bound;
  if (op === "AT_LEAST") return is >= bound;
  return op === "LESS_THAN" ? is < bound : is <= bound;
}

/** Whether a value meets conditions on its attribute. */
export function meetsAll(list: readonly AttributeMatch[], value: string): boolean {
  return !list.some((match) => holds(match, value) === (match.not ?? false));
}

/** The place of the first condition that no attribute meets together with those before it; -1 where there is none. */
export function contradiction(list: readonly AttributeMatch[]): number {
  const known = new Map<string, AttributeMatch[]>();
  return list.findIndex((match) => {
    // Of what is missing, another message tells.
    if (numeric(match.op) && numberOf(match.value ?? "") === undefined) return false;
    if (match.op === "IN" && !match.values?.length) return false;
    const same = [...(known.get(match.key) ?? []), match];
    known.set(match.key, same);
    return excluded(same);
  });
}

function excluded(list: readonly AttributeMatch[]): boolean {
  const asked = list.filter(({ not }) => !not);
  if (asked.length === 0) return false; // where it is missing, all of them hold
  const same = (a: AttributeMatch) => asked.some(({ op, value }) => op === "MATCHES" && value === a.value);
  if (list.some((a) => a.not && (a.op === "EXISTS" || (a.op === "MATCHES" && same(a))))) return true;
  const listed = asked.find(({ op }) => op === "EQUALS" || op === "IN");
  if (listed) {
    const values = listed.op === "IN" ? (listed.values ?? []) : [listed.value ?? ""];
    return !values.some((value) => meetsAll(list, value));
  }
  return asked.some(({ op }) => numeric(op)) && excludesNumbers(list);
}

/** Whether no number meets the comparisons. A number can be written in more than one way, so that no text excludes it. */
function excludesNumbers(list: readonly AttributeMatch[]): boolean {
  let least: { at: bigint; open: boolean } | undefined;
  let most: { at: bigint; open: boolean } | undefined;
  for (const { op, not = false, value = "" } of list) {
    const at = numberOf(value);
    if (!numeric(op) || at === undefined) continue;
    const open = (op === "GREATER_THAN" || op === "LESS_THAN") !== not;
    if ((op === "GREATER_THAN" || op === "AT_LEAST") !== not) {
      if (!least || at > least.at || (at === least.at && open)) least = { at, open };
    } else if (!most || at < most.at || (at === most.at && open)) most = { at, open };
  }
  if (!least || !most) return false;
  return least.at > most.at || (least.at === most.at && (least.open || most.open));
}
