import { type ReactNode, useContext, useEffect, useId, useRef, useState } from "react";
import { Button } from "./Button";
import styles from "./ConfirmDialog.module.css";
import { focusOnError } from "./Form";
import { PageShown } from "./pageShown";
import { useModal } from "./useModal";

interface Props {
  title: string;
  /** The text of the button; without it, the dialog can only be closed. */
  action?: string;
  /** The text for closing, if it is not "Cancel". */
  close?: string;
  busy?: boolean;
  /** Whether the answer is shown only once, as a secret is. Until it is there, the dialog stays open. */
  once?: boolean;
  /** Room for two fields beside each other. */
  wide?: boolean;
  problem?: string | undefined;
  onSubmit?: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** A short form, or what came of it, over the page. It is open for as long as it is rendered. */
export function FormDialog({
  title,
  action,
  close,
  busy = false,
  once = false,
  wide = false,
  problem,
  onSubmit,
  onClose,
  children,
}: Props) {
  const dialog = useModal();
  const titleId = useId();
  const stays = useContext(PageShown) && once && busy;
  const wasBusy = useRef(false);
  /** Where the focus was when the form was sent: a browser takes it from a field that is disabled. */
  const sentFrom = useRef<Element>(null);
  const [tries, setTries] = useState(0);
  // What the server refuses.
  useEffect(() => {
    if (wasBusy.current && !busy) {
      const lost = !dialog.current?.contains(document.activeElement);
      if (lost && sentFrom.current instanceof HTMLElement) sentFrom.current.focus();
      focusOnError(dialog.current);
    }
    wasBusy.current = busy;
  }, [busy, dialog]);
  // What the page itself refuses, without a request.
  useEffect(() => {
    if (tries > 0) focusOnError(dialog.current);
  }, [tries, dialog]);
  return (
    <dialog
      ref={dialog}
      className={wide ? `${styles.dialog} ${styles.wide}` : styles.dialog}
      aria-labelledby={titleId}
      onCancel={(event) => (stays ? event.preventDefault() : onClose())}
      // At a second Escape, some browsers close it whatever the page says.
      onClose={() => stays && dialog.current?.showModal()}
      // In a field whose list is open, Escape closes the list alone.
      onKeyDownCapture={(event) => {
        const open = event.target instanceof Element && event.target.hasAttribute("data-expanded");
        if (event.key === "Escape" && open) event.preventDefault();
      }}
    >
      <h2 id={titleId}>{title}</h2>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          sentFrom.current = document.activeElement;
          onSubmit?.();
          setTries((count) => count + 1);
        }}
      >
        <fieldset className={styles.fields} disabled={busy}>
          {children}
        </fieldset>
        {problem && (
          <p className={styles.error} role="alert" tabIndex={-1} data-problems="">
            {problem}
          </p>
        )}
        <div className={styles.actions}>
          <Button busy={stays} onClick={onClose}>
            {close ?? (action ? "Cancel" : "Close")}
          </Button>
          {action && (
            <Button type="submit" look="primary" busy={busy}>
              {action}
            </Button>
          )}
        </div>
      </form>
    </dialog>
  );
}

/** A secret that is only shown once. */
export function Secret({ children }: { children: string }) {
  return <code className={styles.secret}>{children}</code>;
}
