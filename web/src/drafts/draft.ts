import type { Me } from "../api/access";
import { randomId } from "../api/uuid";

/** What a person has written and not saved, with the object as it was when they began; none for a new object. */
export interface Draft<Values, Base> {
  values: Values;
  base?: Base;
  /** When it was last changed. */
  at: string;
}

/** The object of a draft. */
export interface Kind<Values> {
  word: "rule" | "webhook";
  /** The content of the form for a new object: a draft must have the same fields. */
  blank: Values;
}

/** The person and the object of a draft; no id means a new object. Nobody sees another person's drafts. */
export interface DraftOf<Values> {
  person: string;
  kind: Kind<Values>;
  id: string | undefined;
}

/**
 * A draft as it is stored in this browser. Each open editor writes only to its own draft, so that
 * two tabs never overwrite each other's. An editor reports every few seconds that it is open. If no
 * editor reports a draft, it waits for the next editor of the same thing, which takes it over.
 */
export interface Kept<Values, Base> {
  id: string;
  draft: Draft<Values, Base>;
  /** Whether an open editor writes to it. */
  held: boolean;
}

/**
 * How often an editor reports that it is open, and after how long it counts as closed. A hidden tab
 * may report once a minute.
 */
export const beatMs = 10_000;
const goneMs = 90_000;

/** Whose drafts a person sees. If nobody signs in, drafts belong to everybody. */
export const draftsOf = ({ id, name }: Pick<Me, "id" | "name">): string => id ?? name;

const prefixOf = ({ person, kind, id }: DraftOf<unknown>) => `tocsin.draft.${person}.${kind.word}.${id ?? "new"}`;
const keyOf = (of: DraftOf<unknown>, id: string) => (id === "" ? prefixOf(of) : `${prefixOf(of)}.${id}`);
const holdOf = (id: string) => `tocsin.editing.${id}`;

export const newDraftId = (): string => randomId();

/** Stores a draft in this browser, until it is dropped. Returns false if the browser stores nothing. */
export function keepDraft<V, B>(of: DraftOf<V>, id: string, draft: Draft<V, B>): boolean {
  try {
    localStorage.setItem(keyOf(of, id), JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}

export function dropDraft(of: DraftOf<unknown>, id: string): void {
  quietly(() => localStorage.removeItem(keyOf(of, id)));
}

/** The drafts that the form can read, latest first. */
export function keptDrafts<V, B>(of: DraftOf<V>, now = Date.now()): readonly Kept<V, B>[] {
  const found: Kept<V, B>[] = [];
  quietly(() => {
    const prefix = prefixOf(of);
    for (let at = 0; at < localStorage.length; at++) {
      const key = localStorage.key(at) ?? "";
      if (key !== prefix && !key.startsWith(`${prefix}.`)) continue;
      const id = key.slice(prefix.length + 1);
      const draft = parse<V, B>(of, localStorage.getItem(key));
      if (draft) found.push({ id, draft, held: isHeld(id, now) });
    }
  });
  return found.sort((a, b) => b.draft.at.localeCompare(a.draft.at));
}

/**
 * The first content of an editor: that of its own tab before a reload, or otherwise the last one
 * that was left. Undefined if no draft waits.
 */
export function draftToTake<V, B>(of: DraftOf<V>, now = Date.now()): Kept<V, B> | undefined {
  const waiting = keptDrafts<V, B>(of, now).filter(({ held }) => !held);
  const own = quietly(() => sessionStorage.getItem(prefixOf(of)));
  return waiting.find(({ id }) => id === own) ?? waiting[0];
}

/** Reports that an editor is open and writes to a draft. This must be repeated every {@link beatMs}. */
export function holdDraft(of: DraftOf<unknown>, id: string, now = Date.now()): void {
  quietly(() => {
    localStorage.setItem(holdOf(id), String(now));
    sessionStorage.setItem(prefixOf(of), id);
  });
}

/** Reports that the editor is closed. */
export function releaseDraft(id: string): void {
  quietly(() => localStorage.removeItem(holdOf(id)));
}

/** If a clock was set back, an editor counts as closed: then its draft is copied, and it continues with its own. */
function isHeld(id: string, now: number): boolean {
  const said = localStorage.getItem(holdOf(id));
  return said !== null && Math.abs(now - Number(said)) < goneMs;
}

function parse<V, B>({ kind }: DraftOf<V>, text: string | null): Draft<V, B> | undefined {
  try {
    const draft: unknown = JSON.parse(text ?? "null");
    return shapedLike({ values: kind.blank, at: "" }, draft) ? (draft as Draft<V, B>) : undefined;
  } catch {
    return undefined;
  }
}

/** A browser may store nothing at all: then there is nothing to read, to drop or to report. */
function quietly<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

/** Whether a value has every field of a model, with the same type. Optional fields are undefined in the model. */
function shapedLike(model: unknown, value: unknown): boolean {
  if (model === undefined) return true;
  if (typeof model === "number") return value === undefined || typeof value === "number";
  if (Array.isArray(model)) return Array.isArray(value);
  if (typeof model !== "object" || model === null) return typeof value === typeof model;
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(model).every(([name, part]) => shapedLike(part, (value as Record<string, unknown>)[name]));
}
