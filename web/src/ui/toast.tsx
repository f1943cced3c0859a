import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { Button } from "./Button";
import { IconClose } from "./icons";
import styles from "./toast.module.css";
import { useTopmostDialog } from "./useModal";

/** What the reader can still do about it, and until when. */
export interface Remedy {
  word: string;
  run: () => void;
  until: string;
}

export type Tone = "failed" | "done";

interface Toast {
  id: number;
  text: string;
  tone: Tone;
  remedy: Remedy | undefined;
}

/** Shows a message, and returns a function that removes it. */
type Say = (text: string, tone: Tone, remedy?: Remedy) => () => void;

const SayContext = createContext<Say>(() => () => {});

/**
 * Briefly shows the result of an action, also for screen readers. An error stays until it is
 * closed; an action that can be undone stays as long as that is possible.
 */
export function useToast(): Say {
  return useContext(SayContext);
}

const doneStaysMs = 4_000;

/** The message that remains when its remedy is not possible any more. */
function outlived(toast: Toast): Toast[] {
  return toast.tone === "failed" ? [{ ...toast, remedy: undefined }] : [];
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const nextId = useRef(0);
  const remove = useCallback((id: number) => setToasts((shown) => shown.filter((toast) => toast.id !== id)), []);
  const say = useCallback(
    (text: string, tone: Tone, remedy?: Remedy) => {
      const id = nextId.current++;
      // Equal texts are one message, and of the messages with an undo, only the latest stays.
      setToasts((shown) => [
        ...shown
          .filter((toast) => toast.text !== text)
          .flatMap((toast) => (remedy && toast.remedy ? outlived(toast) : [toast])),
        { id, text, tone, remedy },
      ]);
      if (remedy) {
        const expire = () =>
          setToasts((shown) => shown.flatMap((toast) => (toast.id === id ? outlived(toast) : [toast])));
        setTimeout(expire, Math.max(doneStaysMs, Date.parse(remedy.until) - Date.now()));
      } else if (tone === "done") setTimeout(() => remove(id), doneStaysMs);
      return () => remove(id);
    },
    [remove],
  );
  const dialog = useTopmostDialog();
  const list = <Toasts toasts={toasts} onRemove={remove} />;
  return (
    <SayContext value={say}>
      {children}
      <Region>{!dialog && list}</Region>
      {dialog && createPortal(<Region>{list}</Region>, dialog)}
    </SayContext>
  );
}

/** Screen readers read what is added to it. Beside it, that of an open dialog: only what is in the dialog can be used. */
function Region({ children }: { children: ReactNode }) {
  return (
    <section className={styles.toasts} aria-label="Messages" aria-live="polite">
      {children}
    </section>
  );
}

function Toasts({ toasts, onRemove }: { toasts: readonly Toast[]; onRemove: (id: number) => void }) {
  return toasts.map((toast) => (
    <div key={toast.id} className={toast.tone === "done" ? `${styles.toast} ${styles.done}` : styles.toast}>
      <p>{toast.text}</p>
      {toast.remedy && (
        <Button
          onClick={() => {
            onRemove(toast.id);
            toast.remedy?.run();
          }}
        >
          {toast.remedy.word}
        </Button>
      )}
      <button type="button" className={styles.away} aria-label="Dismiss" onClick={() => onRemove(toast.id)}>
        <IconClose size={15} aria-hidden="true" />
      </button>
    </div>
  ));
}
