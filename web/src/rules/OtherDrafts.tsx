import { Button } from "../ui/Button";
import { Ago } from "../ui/Instant";
import type { Kept } from "./draft";
import styles from "./editor.module.css";

interface Props {
  drafts: readonly Kept[];
  /** Called with the draft that is wanted in place of what is in the form, which stays kept. */
  onTake: (kept: Kept) => void;
  onGiveUp: (kept: Kept) => void;
}

/** What else somebody has written about the same rule and not saved, here or in other tabs. */
export function OtherDrafts({ drafts, onTake, onGiveUp }: Props) {
  return drafts.map((kept) => {
    const name = kept.draft.values.name;
    const words = name ? `“${name}”` : "One without a name";
    return (
      <div key={kept.id} className={styles.note} role="status">
        <span>
          {words} is {kept.held ? "open in another tab" : "kept, too"}: not saved, written{" "}
          <Ago at={kept.draft.at} stop />.
        </span>
        {!kept.held && (
          <>
            <Button onClick={() => onTake(kept)}>
              Go on with it<span className="visually-hidden"> {words}</span>
            </Button>
            <Button onClick={() => onGiveUp(kept)}>
              Give it up<span className="visually-hidden"> {words}</span>
            </Button>
          </>
        )}
      </div>
    );
  });
}
