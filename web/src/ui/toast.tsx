import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from "react";
import { IconClose } from "./icons";
import styles from "./toast.module.css";

interface Toast {
  id: number;
  text: string;
  tone: "failed" | "done";
}

const Say = createContext<(text: string, tone: Toast["tone"]) => void>(() => {});

/** Says in passing how an action ended, to eyes and to screen readers. What failed stays until it is put away. */
export function useToast() {
  return useContext(Say);
}

const doneStaysMs = 4_000;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const nextId = useRef(0);
  const remove = useCallback((id: number) => setToasts((shown) => shown.filter((toast) => toast.id !== id)), []);
  const say = useCallback(
    (text: string, tone: Toast["tone"]) => {
      const id = nextId.current++;
      // The same words twice are one message.
      setToasts((shown) => [...shown.filter((toast) => toast.text !== text), { id, text, tone }]);
      if (tone === "done") setTimeout(() => remove(id), doneStaysMs);
    },
    [remove],
  );
  return (
    <Say value={say}>
      {children}
      <section className={styles.toasts} aria-label="Messages" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.id} className={toast.tone === "done" ? `${styles.toast} ${styles.done}` : styles.toast}>
            <p>{toast.text}</p>
            <button type="button" aria-label="Put away" onClick={() => remove(toast.id)}>
              <IconClose size={15} aria-hidden="true" />
            </button>
          </div>
        ))}
      </section>
    </Say>
  );
}
