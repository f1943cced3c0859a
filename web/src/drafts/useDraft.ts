import { useCallback, useEffect, useRef, useState } from "react";
import {
  beatMs,
  type Draft,
  type DraftOf,
  draftToTake,
  dropDraft,
  holdDraft,
  type Kept,
  keepDraft,
  keptDrafts,
  newDraftId,
  releaseDraft,
} from "./draft";

/**
 * The draft of an open editor. It begins with a requested draft, or otherwise with a waiting one.
 * It takes that over once it is stored again: until then the former draft stays. `of` must not
 * change. With `again`, a waiting draft continues to wait.
 */
export function useDraft<V, B>(of: DraftOf<V>, asked: Kept<V, B> | undefined, again = false) {
  const [id] = useState(newDraftId);
  const [taken] = useState(() => asked ?? (again ? undefined : draftToTake<V, B>(of)));
  /** What is stored now. */
  const present = useRef<Draft<V, B>>(undefined);

  const keep = useCallback(
    (draft: Draft<V, B>): boolean => {
      present.current = draft;
      if (!keepDraft(of, id, draft)) return false;
      holdDraft(of, id);
      if (taken) dropDraft(of, taken.id);
      return true;
    },
    [of, id, taken],
  );
  const drop = useCallback(() => {
    present.current = undefined;
    dropDraft(of, id);
    releaseDraft(id);
    if (taken) dropDraft(of, taken.id);
  }, [of, id, taken]);

  useEffect(() => {
    const hold = () => {
      if (!present.current) return;
      holdDraft(of, id);
      // A suspended tab counts as gone, and another tab may have taken over its draft meanwhile.
      if (!keptDrafts(of).some((kept) => kept.id === id)) keepDraft(of, id, present.current);
    };
    const release = () => releaseDraft(id);
    const timer = setInterval(hold, beatMs);
    window.addEventListener("pagehide", release);
    window.addEventListener("pageshow", hold);
    hold();
    return () => {
      clearInterval(timer);
      window.removeEventListener("pagehide", release);
      window.removeEventListener("pageshow", hold);
      release();
    };
  }, [of, id]);

  return { taken: taken?.draft, keep, drop, ...useOthers<V, B>(of, id, taken?.id) };
}

/**
 * Other stored drafts of the same object, as this tab and others change them. A draft that was
 * taken belongs to this tab, even if it is not stored again yet.
 */
function useOthers<V, B>(of: DraftOf<V>, id: string, takenId: string | undefined) {
  const [others, setOthers] = useState<readonly Kept<V, B>[]>([]);
  const look = useCallback(
    () =>
      setOthers((before) => {
        const found = keptDrafts<V, B>(of).filter((kept) => kept.id !== id && kept.id !== takenId);
        return JSON.stringify(found) === JSON.stringify(before) ? before : found;
      }),
    [of, id, takenId],
  );
  useEffect(() => {
    const timer = setInterval(look, beatMs);
    window.addEventListener("storage", look);
    look();
    return () => {
      clearInterval(timer);
      window.removeEventListener("storage", look);
    };
  }, [look]);
  const giveUp = (other: Kept<V, B>) => {
    dropDraft(of, other.id);
    look();
  };
  return { others, giveUp };
}

interface Typed<V, B> {
  values: V;
  /** The object when the person began; none for a new object. */
  base: B | undefined;
  /** Whether there is something to store. */
  dirty: boolean;
}

/** Stores what a person types in a form until it is saved. */
export function useKeeping<V, B>(
  { taken, keep, drop }: Pick<ReturnType<typeof useDraft<V, B>>, "taken" | "keep" | "drop">,
  { values, base, dirty }: Typed<V, B>,
) {
  const [restored, setRestored] = useState(dirty ? taken?.at : undefined);
  const [kept, setKept] = useState(true);
  useEffect(() => {
    if (dirty) setKept(keep({ values, at: new Date().toISOString(), ...(base === undefined ? {} : { base }) }));
    else drop();
  }, [keep, drop, base, values, dirty]);
  return {
    /** When the restored text was written; undefined if there is none. */
    restored,
    /** Whether the typed text survives this page. */
    kept,
    /** Deletes what was stored: it is saved, or discarded. */
    forget: () => {
      drop();
      setRestored(undefined);
    },
  };
}
