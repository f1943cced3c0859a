import type { Reconciliation, Rule } from "../api/client";

/** Rules in the order in which they deserve a look: those that fail, then those farthest behind. What is off comes last. */
export function byTrouble(rules: readonly Rule[]): readonly Rule[] {
  const rank = ({ enabled, health }: Rule) => (!enabled ? 2 : health?.lastError ? 0 : 1);
  return [...rules].sort(
    (a, b) =>
      rank(a) - rank(b) || (b.health?.lagSeconds ?? -1) - (a.health?.lagSeconds ?? -1) || a.name.localeCompare(b.name),
  );
}

const plain = new Intl.NumberFormat("en");

/** What a comparison found, in a sentence. */
export function comparison({
  matching,
  alerted,
  missing,
  missingSample,
  outOfReach,
  unexpected,
}: Reconciliation): string {
  const parts = [`${plain.format(alerted)} of ${plain.format(matching)} matching exchanges have their alert`];
  if (missing > 0) {
    const more = missing > missingSample.length ? ", …" : "";
    parts.push(`${plain.format(missing)} missing: ${missingSample.join(", ")}${more}`);
  } else parts.push("none is missing");
  if (outOfReach > 0) parts.push(`${plain.format(outOfReach)} ran for longer than the rule looks back`);
  if (unexpected > 0) parts.push(`${plain.format(unexpected)} alerts whose exchange does not match any more`);
  return `${parts.join("; ")}.`;
}
