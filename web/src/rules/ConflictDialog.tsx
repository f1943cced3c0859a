import { useId, useState } from "react";
import { Button } from "../ui/Button";
import dialogStyles from "../ui/ConfirmDialog.module.css";
import { useModal } from "../ui/useModal";
import styles from "./ConflictDialog.module.css";
import { type Difference, differences, merged, type Side, usualSide } from "./conflict";
import type { Values } from "./definition";

interface Props {
  base: Values;
  theirs: Values;
  mine: Values;
  webhookName: (id: string) => string;
  onTake: (values: Values) => void;
  onClose: () => void;
}

/** Somebody else has saved the rule meanwhile: both versions, field by field. Nothing is saved by choosing. */
export function ConflictDialog({ base, theirs, mine, webhookName, onTake, onClose }: Props) {
  const dialog = useModal();
  const titleId = useId();
  const found = differences(base, { theirs, mine }, webhookName);
  const [sides, setSides] = useState<Record<string, Side>>({});
  const sideOf = (difference: Difference) => sides[difference.field] ?? usualSide(difference);
  const all = (side: Side) => setSides(Object.fromEntries(found.map(({ field }) => [field, side])));
  const take = () => {
    const own = found.filter((difference) => sideOf(difference) === "mine").map(({ field }) => field);
    onTake(merged({ theirs, mine }, own));
  };
  return (
    <dialog
      ref={dialog}
      className={`${dialogStyles.dialog} ${styles.dialog}`}
      aria-labelledby={titleId}
      onCancel={onClose}
    >
      <h2 id={titleId}>Somebody else has changed this rule</h2>
      <p className={dialogStyles.body}>Choose a version for each field. Nothing is saved until you save again.</p>
      <div className={styles.all}>
        <Button look="quiet" onClick={() => all("theirs")}>
          All theirs
        </Button>
        <Button look="quiet" onClick={() => all("mine")}>
          All mine
        </Button>
      </div>
      <div className={styles.fields}>
        {found.map((difference) => (
          <fieldset key={difference.field} className={styles.field}>
            <legend>
              {difference.label}
              {difference.changedBy === "both" && <span className={styles.both}>both changed it</span>}
            </legend>
            {(["theirs", "mine"] as const).map((side) => (
              <label key={side} className={styles.side}>
                <input
                  type="radio"
                  name={`conflict-${difference.field}`}
                  checked={sideOf(difference) === side}
                  onChange={() => setSides((before) => ({ ...before, [difference.field]: side }))}
                />
                <span className={styles.who}>{side === "theirs" ? "Theirs" : "Mine"}</span>
                <span className={styles.value}>{difference[side]}</span>
              </label>
            ))}
          </fieldset>
        ))}
      </div>
      <div className={dialogStyles.actions}>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" onClick={take}>
          Use these
        </Button>
      </div>
    </dialog>
  );
}
