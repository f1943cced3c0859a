import { type Ref, useEffect } from "react";
import { IconSearch } from "./icons";
import styles from "./SearchField.module.css";
import { useTyped } from "./useTyped";

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
  const { typed, setTyped, report } = useTyped(value, onChange);
  useEffect(() => {
    const timer = setTimeout(() => report(typed.trim()), typingPauseMs);
    return () => clearTimeout(timer);
  }, [typed, report]);
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
          report(typed.trim());
          event.currentTarget.blur();
        }}
      />
      <span className={styles.slash} aria-hidden="true">
        /
      </span>
    </div>
  );
}
