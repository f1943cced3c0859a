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
 * The draft of one open editor. It begins with what is asked for, or else with what waits, and makes that its own once it
 * is kept anew: until then the former one stays. `of` has to be the same one each time.
 */
export function useDraft(of: DraftOf, asked: Kept | undefined) {
  const [id] = useState(newDraftId);
  const [taken] = useState(() => asked ?? draftToTake(of));
  /** What is kept at present. */
  const present = useRef<Draft>(undefined);

  const keep = useCallback(
    (draft: Draft): boolean => {
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
      // A tab that stood still counts as gone, and another one may have taken its draft meanwhile.
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

  return { taken: taken?.draft, keep, drop, ...useOthers(of, id, taken?.id) };
}

/** What else is kept of the same rule, as this tab and others change it. What was taken is this one's, if not yet kept anew. */
function useOthers(of: DraftOf, id: string, takenId: string | undefined) {
  const [others, setOthers] = useState<readonly Kept[]>([]);
  const look = useCallback(
    () =>
      setOthers((before) => {
        const found = keptDrafts(of).filter((kept) => kept.id !== id && kept.id !== takenId);
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
  const giveUp = (other: Kept) => {
    dropDraft(of, other.id);
    look();
  };
  return { others, giveUp };
}
