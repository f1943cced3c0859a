import type { ReactNode } from "react";
import { Button } from "../ui/Button";
import styles from "../ui/form.module.css";
import { Ago } from "../ui/Instant";
import type { Kept } from "./draft";

interface Props<V, B> {
  /** The person, by name. */
  name: string;
  /** When the restored text in the form was written; undefined if there is none. */
  restored: string | undefined;
  onRestart: () => void;
  others: readonly Kept<V, B>[];
  /** Called with the draft that is to replace the content of the form, which stays stored. */
  onTake: (kept: Kept<V, B>) => void;
  onGiveUp: (kept: Kept<V, B>) => void;
  /** A further note about the restored draft. */
  children?: ReactNode;
}

/**
 * What a person has written before and not saved: the restored draft, and other drafts of the same
 * thing, here or in other tabs.
 */
export function Drafts<V extends { name: string }, B>(props: Props<V, B>) {
  const { name, restored, onRestart, others, onTake, onGiveUp, children } = props;
  return (
    <>
      {restored && (
        <div className={styles.note} role="status">
          <span>
            Your unsaved changes from <Ago at={restored} stop /> were restored, {name}.{children && <> {children}</>}
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
