import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from "react";
import { IconSearch } from "../../ui/icons";
import { useModal } from "../../ui/useModal";
import { counted } from "../../ui/words";
import styles from "./CommandPalette.module.css";
import { type Entry, sift } from "./entries";
import { useEntries } from "./useEntries";

/**
 * One field that reaches every page, rule, webhook, alert and action. It is open while it is
 * rendered; then the focus returns to where it was. The field keeps the focus and points to an
 * option, as a combobox does.
 */
export function CommandPalette({ onClose }: { onClose: () => void }) {
  const dialog = useModal();
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState("");
  const { entries, searching } = useEntries(text);
  const groups = sift(entries, text);
  const shown = groups.flatMap((group) => group.entries);
  const at = Math.max(
    0,
    shown.findIndex((entry) => entry.id === chosen),
  );
  const active = shown[at];

  useLayoutEffect(() => field.current?.focus(), []);
  useLayoutEffect(() => {
    if (active)
      list.current?.querySelector(`[data-entry="${CSS.escape(active.id)}"]`)?.scrollIntoView({ block: "nearest" });
  }, [active]);

  const perform = (entry: Entry | undefined) => {
    if (!entry) return;
    // The focus returns first, so that a page that opens may take it.
    dialog.current?.close();
    onClose();
    void entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (by !== undefined && shown.length > 0) {
      event.preventDefault();
      const to = Math.abs(by) === 1 ? (at + by + shown.length) % shown.length : at + by;
      setChosen(shown[Math.min(shown.length - 1, Math.max(0, to))]?.id ?? "");
    } else if (event.key === "Enter") {
      event.preventDefault();
      perform(active);
    } else if (event.key === "Escape") {
      event.preventDefault();
      onClose();
    }
  };
  const optionId = (entry: Entry) => `${id}-${shown.indexOf(entry)}`;
  return (
    <dialog
      ref={dialog}
      className={styles.palette}
      aria-label="Search or run a command"
      onCancel={onClose}
      onMouseDown={(event) => event.target === dialog.current && onClose()}
    >
      <div className={styles.field}>
        <IconSearch size={17} aria-hidden="true" />
        <input
          ref={field}
          role="combobox"
          aria-label="Search or run a command"
          aria-expanded={shown.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={active ? optionId(active) : undefined}
          placeholder="Search alerts, rules, webhooks, pages and actions…"
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value);
            setChosen("");
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <div ref={list} id={`${id}-list`} role="listbox" aria-label="Results" className={styles.list}>
        {groups.map(({ section, entries: some }) => (
          // biome-ignore lint/a11y/useSemanticElements: a group of options within a list box is no set of fields.
          <div key={section} role="group" aria-label={section}>
            <div className={styles.section} aria-hidden="true">
              {section}
            </div>
            {some.map((entry) => (
              // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus and points at the option.
              // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the field does the same.
              <div
                key={entry.id}
                id={optionId(entry)}
                role="option"
                data-entry={entry.id}
                aria-selected={entry === active}
                className={styles.option}
                onPointerMove={() => setChosen(entry.id)}
                onClick={() => perform(entry)}
              >
                <entry.icon size={16} stroke={1.7} aria-hidden="true" />
                <span className={styles.label}>{entry.label}</span>
                {entry.hint && <span className={styles.hint}>{entry.hint}</span>}
              </div>
            ))}
          </div>
        ))}
      </div>
      <p className={styles.foot} role="status">
        {searching ? "Searching alerts…" : shown.length === 0 ? "No results" : counted(shown.length, "result")}
      </p>
    </dialog>
  );
}
