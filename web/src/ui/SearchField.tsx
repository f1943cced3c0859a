import { type Ref, useCallback, useEffect, useRef, useState } from "react";
import { IconSearch } from "./icons";
import styles from "./SearchField.module.css";

const typingPauseMs = 250;

interface Props {
  /** What is searched, for screen readers. */
  label: string;
  value: string;
  onChange: (value: string) => void;
  inputRef?: Ref<HTMLInputElement>;
}

/** Reports the typed text when the typing pauses. */
export function SearchField({ label, value, onChange, inputRef }: Props) {
  const [typed, setTyped] = useState(value);
  const reported = useRef(value);
  const report = useRef(onChange);
  useEffect(() => {
    report.current = onChange;
  });
  // The address changed while the field was shown, by the browser's back button or by a link.
  if (value !== reported.current) {
    reported.current = value;
    setTyped(value);
  }
  const reportNow = useCallback((text: string) => {
    if (text === reported.current) return;
    reported.current = text;
    report.current(text);
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => reportNow(typed.trim()), typingPauseMs);
    return () => clearTimeout(timer);
  }, [typed, reportNow]);
  return (
    <div className={styles.search}>
      <IconSearch size={15} aria-hidden="true" />
      <input
        ref={inputRef}
        type="search"
        placeholder="Search"
        aria-label={label}
        maxLength={200}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing || (event.key !== "Escape" && event.key !== "Enter")) return;
          event.preventDefault();
          if (event.key === "Escape" && typed !== "") return setTyped("");
          // Then the keys of the list work again.
          reportNow(typed.trim());
          event.currentTarget.blur();
        }}
      />
      <span className={styles.slash} aria-hidden="true">
        /
      </span>
    </div>
  );
}
