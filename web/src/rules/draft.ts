import type { Me } from "../api/access";
import type { Rule } from "../api/client";
import { initialValues, type Values } from "./definition";

/** What somebody has written and not saved, with the rule as it was when they began; none of a new one. */
export interface Draft {
  values: Values;
  base?: Rule;
  /** When it was last written to. */
  at: string;
}

/** Whose a draft is and of which rule, where undefined is a new one. Nobody is shown another person's. */
export interface DraftOf {
  person: string;
  ruleId: string | undefined;
}

/** Whose drafts somebody sees. Where nobody signs in, they are everybody's. */
export const draftsOf = ({ id, name }: Pick<Me, "id" | "name">): string => id ?? name;

const keyOf = ({ person, ruleId }: DraftOf) => `tocsin.draft.${person}.rule.${ruleId ?? "new"}`;

/** Keeps a draft in this browser, until it is dropped. False where the browser keeps nothing. */
export function keepDraft(of: DraftOf, draft: Draft): boolean {
  try {
    localStorage.setItem(keyOf(of), JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}

export function dropDraft(of: DraftOf): void {
  try {
    localStorage.removeItem(keyOf(of));
  } catch {
    // Then there is none, either.
  }
}

/** A draft; undefined where there is none that the form can read. */
export function readDraft(of: DraftOf): Draft | undefined {
  try {
    const draft: unknown = JSON.parse(localStorage.getItem(keyOf(of)) ?? "null");
    return shapedLike({ values: initialValues, at: "" }, draft) ? (draft as Draft) : undefined;
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
