import { useId, useState } from "react";
import { Button } from "./Button";
import dialogStyles from "./ConfirmDialog.module.css";
import styles from "./ConflictDialog.module.css";
import { useModal } from "./useModal";

export type Side = "theirs" | "mine";

/** One field with different values from two people. */
export interface Conflict<F extends string = string> {
  field: F;
  label: string;
  theirs: string;
  mine: string;
  /** Which side has changed it since both began; possibly both. */
  changedBy: "theirs" | "mine" | "both";
}

/** The default choice: the side that changed it, and the reader's own if both did. */
export function usualSide({ changedBy }: Pick<Conflict, "changedBy">): Side {
  return changedBy === "theirs" ? "theirs" : "mine";
}

interface Props<F extends string> {
  /** The object that two people have changed: "rule". */
  what: string;
  found: readonly Conflict<F>[];
  /** What cannot be compared, and what happens to it. */
  note?: string;
  /** Called with the fields that are to have the reader's own values. */
  onTake: (mine: readonly F[]) => void;
  onClose: () => void;
}

/** Somebody else has saved the same object meanwhile: both versions, field by field. Choosing saves nothing. */
export function ConflictDialog<F extends string>({ what, found, note, onTake, onClose }: Props<F>) {
  const dialog = useModal();
  const titleId = useId();
  const [sides, setSides] = useState<Record<string, Side>>({});
  const sideOf = (conflict: Conflict) => sides[conflict.field] ?? usualSide(conflict);
  const all = (side: Side) => setSides(Object.fromEntries(found.map(({ field }) => [field, side])));
  const take = () => onTake(found.filter((conflict) => sideOf(conflict) === "mine").map(({ field }) => field));
  return (
    <dialog
      ref={dialog}
      className={`${dialogStyles.dialog} ${styles.dialog}`}
      aria-labelledby={titleId}
      onCancel={onClose}
    >
      <h2 id={titleId}>Someone else has changed this {what}</h2>
      <p className={dialogStyles.body}>
        {found.length > 0
          ? "Choose a version for each field. Nothing is saved until you save again."
          : "Both versions look the same. Nothing is saved until you save again."}
        {note && ` ${note}`}
      </p>
      {found.length > 0 && (
        <div className={styles.all}>
          <Button look="quiet" onClick={() => all("theirs")}>
            Use all theirs
          </Button>
          <Button look="quiet" onClick={() => all("mine")}>
            Use all mine
          </Button>
        </div>
      )}
      <div className={styles.fields}>
        {found.map((conflict) => (
          <fieldset key={conflict.field} className={styles.field}>
            <legend>
              {conflict.label}
              {conflict.changedBy === "both" && <span className={styles.both}>changed by both</span>}
            </legend>
            {(["theirs", "mine"] as const).map((side) => (
              <label key={side} className={styles.side}>
                <input
                  type="radio"
                  name={`conflict-${conflict.field}`}
                  checked={sideOf(conflict) === side}
                  onChange={() => setSides((before) => ({ ...before, [conflict.field]: side }))}
                />
                <span className={styles.who}>{side === "theirs" ? "Theirs" : "Mine"}</span>
                <span className={styles.value}>{conflict[side]}</span>
              </label>
            ))}
          </fieldset>
        ))}
      </div>
      <div className={dialogStyles.actions}>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" onClick={take}>
          Use these versions
        </Button>
      </div>
    </dialog>
  );
}
