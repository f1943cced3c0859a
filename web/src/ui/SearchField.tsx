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

/** Tells what was typed once the typing pauses. */
export function SearchField({ label, value, onChange, inputRef }: Props) {
  const [typed, setTyped] = useState(value);
  const told = useRef(value);
  const tell = useRef(onChange);
  useEffect(() => {
    tell.current = onChange;
  });
  // The address changed under the field, by the browser's back button or by a link.
  if (value !== told.current) {
    told.current = value;
    setTyped(value);
  }
  const tellNow = useCallback((text: string) => {
    if (text === told.current) return;
    told.current = text;
    tell.current(text);
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => tellNow(typed.trim()), typingPauseMs);
    return () => clearTimeout(timer);
  }, [typed, tellNow]);
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
          // The keys of the list are at hand again.
          tellNow(typed.trim());
          event.currentTarget.blur();
        }}
      />
      <span className={styles.slash} aria-hidden="true">
        /
      </span>
    </div>
  );
}
