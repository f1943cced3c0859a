import type { Rule } from "../api/client";
import { initialValues, type Values } from "./definition";

/** What somebody has written and not saved, with the rule as it was when they began; none of a new one. */
export interface Draft {
  values: Values;
  base?: Rule;
}

const keyOf = (ruleId: string | undefined) => `tocsin.draft.rule.${ruleId ?? "new"}`;

/** Keeps a draft for this tab, over reloads. A browser that keeps nothing is no reason to stop anybody. */
export function keepDraft(ruleId: string | undefined, draft: Draft): void {
  try {
    sessionStorage.setItem(keyOf(ruleId), JSON.stringify(draft));
  } catch {
    // Leaving the page still asks.
  }
}

export function dropDraft(ruleId: string | undefined): void {
  try {
    sessionStorage.removeItem(keyOf(ruleId));
  } catch {
    // Then there is none, either.
  }
}

/** The draft of a rule, or of a new one; undefined where there is none that this form can read. */
export function readDraft(ruleId: string | undefined): Draft | undefined {
  try {
    const draft: unknown = JSON.parse(sessionStorage.getItem(keyOf(ruleId)) ?? "null");
    if (!shapedLike({ values: initialValues }, draft)) return undefined;
    return draft as Draft;
  } catch {
    return undefined;
  }
}

/** Whether a value has every field of a model, of the same type. What may be absent is undefined in the model. */
function shapedLike(model: unknown, value: unknown): boolean {
  if (model === undefined) return true;
  if (typeof model === "number") return value === undefined || typeof value === "number";
  if (Array.isArray(model)) return Array.isArray(value);
  if (typeof model !== "object" || model === null) return typeof value === typeof model;
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(model).every(([name, part]) => shapedLike(part, (value as Record<string, unknown>)[name]));
}
