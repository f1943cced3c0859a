import { type ReactNode, useId } from "react";
import { reasonOf } from "../api/errors";
import { Button } from "./Button";
import styles from "./ConfirmDialog.module.css";
import { useModal } from "./useModal";

interface Props {
  title: string;
  /** What the button does, in words. */
  action: string;
  busy: boolean;
  /** Why the action was refused; the dialog stays, so that this can be read. */
  error: unknown;
  onConfirm: () => void;
  /** A milder alternative, which then is what the keyboard reaches first. */
  milder?: { word: string; run: () => void };
  onClose: () => void;
  children: ReactNode;
}

/** Asks before an action that cannot be undone. It is open while it is rendered. */
export function ConfirmDialog({ title, action, busy, error, onConfirm, milder, onClose, children }: Props) {
  const dialog = useModal();
  const titleId = useId();
  return (
    <dialog ref={dialog} className={styles.dialog} aria-labelledby={titleId} onCancel={onClose}>
      <h2 id={titleId}>{title}</h2>
      <div className={styles.body}>{children}</div>
      {error != null && (
        <p className={styles.error} role="alert">
          {reasonOf(error)}
        </p>
      )}
      <div className={styles.actions}>
        <Button onClick={onClose}>Cancel</Button>
        {milder && <Button onClick={milder.run}>{milder.word}</Button>}
        <Button look="danger" busy={busy} onClick={onConfirm}>
          {action}
        </Button>
      </div>
    </dialog>
  );
}
