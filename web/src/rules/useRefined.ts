import { useQuery } from "@tanstack/react-query";
import { oneAlert } from "../api/alerts";
import type { Rule } from "../api/client";
import { ruleOne } from "../api/rules";
import { type Refinement, refined, refinementWords } from "./refine";
import { type Values, valuesOf } from "./values";

/** The first content of an editor that was opened from an alert. */
export interface Proposal {
  by: Refinement;
  ruleId: string;
  values: Values;
  words: string;
}

/** The proposal of an alert for its rule, or for a new rule that begins as a copy of it; undefined while it loads. */
export function useRefined(search: Partial<Refinement>, rule: Rule | undefined) {
  const by = search.alert === undefined ? undefined : { ...search, alert: search.alert };
  const alert = useQuery({ ...oneAlert(by?.alert ?? ""), enabled: by !== undefined });
  const ruleId = rule?.id ?? alert.data?.ruleId;
  const stored = useQuery({ ...ruleOne(ruleId ?? ""), enabled: by !== undefined && !rule && ruleId !== undefined });
  const from = rule ?? stored.data;
  const error = alert.error ?? stored.error;
  if (!by || !alert.data || !from) return { wanted: by !== undefined, error, proposal: undefined };
  const words = refinementWords(alert.data, by);
  const values = refined(valuesOf(from), alert.data, by);
  const named = rule ? values : { ...values, name: `${from.name}: ${words}`.slice(0, 200) };
  return { wanted: true, error: null, proposal: { by, ruleId: from.id, values: named, words } satisfies Proposal };
}
