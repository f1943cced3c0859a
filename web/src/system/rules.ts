import type { Reconciliation, Rule } from "../api/client";
import { number } from "../ui/words";

/** Rules in order of urgency: failing ones, then those furthest behind. Disabled rules come last. */
export function byTrouble(rules: readonly Rule[]): readonly Rule[] {
  const rank = ({ enabled, health }: Rule) => (!enabled ? 2 : health?.lastError ? 0 : 1);
  return [...rules].sort(
    (a, b) =>
      rank(a) - rank(b) || (b.health?.lagSeconds ?? -1) - (a.health?.lagSeconds ?? -1) || a.name.localeCompare(b.name),
  );
}

/** The result of a comparison, in a sentence. */
export function comparison(found: Reconciliation, fireMode: Rule["fireMode"] = "PER_EXCHANGE"): string {
  return fireMode === "PER_EXCHANGE" ? ofExchanges(found) : ofWindows(found);
}

/** Of a window rule: its alerts say what they counted, which is measured again. */
function ofWindows({ matching, alerted, missing, missingSample, unexpected, ...found }: Reconciliation): string {
  const { different = 0, late = 0, lateBySeconds = 0, findings = [] } = found;
  const parts = [`${number(alerted)} of ${number(matching)} threshold crossings have an alert`];
  parts.push(missing > 0 ? `${number(missing)} missing: ${missingSample.join(", ")}` : "none is missing");
  if (unexpected > 0) parts.push(`${number(unexpected)} unexpected`);
  if (different > 0) parts.push(`${number(different)} with a count that differs from the table`);
  if (late > 0)
    parts.push(`${number(late)} without exchanges that arrived up to ${number(Math.ceil(lateBySeconds))} s late`);
  for (const { kind, why } of findings) if (kind === "UNCHECKED") parts.push(`not checked: ${why}`);
  return `${parts.join("; ")}.`;
}

function ofExchanges({ matching, alerted, missing, missingSample, lateDropped, unexpected }: Reconciliation): string {
  const parts = [`${number(alerted)} of ${number(matching)} matching exchanges have an alert`];
  if (missing > 0) {
    const more = missing > missingSample.length ? ", …" : "";
    parts.push(`${number(missing)} missing: ${missingSample.join(", ")}${more}`);
  } else parts.push("none is missing");
  if (lateDropped > 0) parts.push(`${number(lateDropped)} became visible beyond the look-back`);
  if (unexpected > 0) parts.push(`${number(unexpected)} alerts whose exchange no longer matches`);
  return `${parts.join("; ")}.`;
}
