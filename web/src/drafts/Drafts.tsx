import type { ReactNode } from "react";
import { Button } from "../ui/Button";
import styles from "../ui/form.module.css";
import { Ago } from "../ui/Instant";
import type { Kept } from "./draft";

interface Props<V, B> {
  /** The person, by name. */
  name: string;
  /** When what is back in the form was written; undefined where nothing is. */
  restored: string | undefined;
  onRestart: () => void;
  others: readonly Kept<V, B>[];
  /** Called with the draft that is wanted in place of what is in the form, which stays kept. */
  onTake: (kept: Kept<V, B>) => void;
  onGiveUp: (kept: Kept<V, B>) => void;
  /** What else there is to say of what is back. */
  children?: ReactNode;
}

/** What somebody has written before and not saved: what is back, and what else there is of the same, here or in other tabs. */
export function Drafts<V extends { name: string }, B>(props: Props<V, B>) {
  const { name, restored, onRestart, others, onTake, onGiveUp, children } = props;
  return (
    <>
      {restored && (
        <div className={styles.note} role="status">
          <span>
            Restored your unsaved changes from <Ago at={restored} stop />, {name}.{children && <> {children}</>}
          </span>
          <Button onClick={onRestart}>Discard</Button>
        </div>
      )}
      {others.map((kept) => (
        <Other key={kept.id} kept={kept} onTake={onTake} onGiveUp={onGiveUp} />
      ))}
    </>
  );
}

function Other<V extends { name: string }, B>({
  kept,
  onTake,
  onGiveUp,
}: { kept: Kept<V, B> } & Pick<Props<V, B>, "onTake" | "onGiveUp">) {
  const { draft, held } = kept;
  const words = draft.values.name ? `“${draft.values.name}”` : "An unnamed draft";
  return (
    <div className={styles.note} role="status">
      <span>
        {words} is {held ? "open in another tab" : "another draft"}, last changed <Ago at={draft.at} stop />.
      </span>
      {!held && (
        <>
          <Button onClick={() => onTake(kept)}>
            Continue<span className="visually-hidden"> {words}</span>
          </Button>
          <Button onClick={() => onGiveUp(kept)}>
            Discard<span className="visually-hidden"> {words}</span>
          </Button>
        </>
      )}
    </div>
  );
}
