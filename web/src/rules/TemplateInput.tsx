import { Input } from "@mantine/core";
import {
  type ChangeEvent,
  type KeyboardEvent,
  type RefObject,
  type SyntheticEvent,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";
import { buttonClass } from "../ui/Button";
import { complete, type Open, offers, openAt, pieces } from "../ui/completion";
import type { Variable } from "../ui/variables";
import styles from "./TemplateInput.module.css";

interface Props {
  label: string;
  value: string;
  placeholder: string;
  error: string | undefined;
  variables: readonly Variable[];
  /** More than one line is allowed. */
  lines?: boolean;
  onChange: (value: string) => void;
}

type Field = HTMLInputElement | HTMLTextAreaElement;

/**
 * A text with Mustache tags. Tags are coloured, a tag that the API refuses is underlined, and names
 * are offered after an open brace. It is a plain field, so that a phone's keyboard, spelling and
 * undo work as in other fields.
 */
export function TemplateInput({ label, value, placeholder, error, variables, lines = false, onChange }: Props) {
  const id = useId();
  const field = useRef<Field>(null);
  const tint = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<Open>();
  const [at, setAt] = useState(0);
  const caret = useRef<number>(undefined);
  const offered = open ? offers(variables, open.typed) : [];
  const chosen = offered[Math.min(at, offered.length - 1)];

  useEffect(() => {
    if (caret.current === undefined) return;
    field.current?.setSelectionRange(caret.current, caret.current);
    caret.current = undefined;
  });

  const look = (event: SyntheticEvent<Field>) => {
    const { value: text, selectionStart } = event.currentTarget;
    setOpen(openAt(text, selectionStart ?? text.length));
    setAt(0);
  };
  const put = (variable: Variable) => {
    if (!open) return;
    const done = complete(value, open, variable.name);
    caret.current = done.caret;
    setOpen(undefined);
    onChange(done.text);
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent<Field>) => {
    if (!chosen || event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((offered.indexOf(chosen) + step + offered.length) % offered.length);
    else if (event.key === "Enter" || event.key === "Tab") put(chosen);
    else if (event.key === "Escape") setOpen(undefined);
    else return;
    event.preventDefault();
  };
  const insert = () => {
    const from = field.current?.selectionStart ?? value.length;
    const text = `${value.slice(0, from)}{{${value.slice(from)}`;
    caret.current = from + 2;
    onChange(text);
    setOpen(openAt(text, from + 2));
    setAt(0);
    field.current?.focus();
  };
  const follow = () => {
    if (field.current && tint.current) {
      tint.current.scrollTop = field.current.scrollTop;
      tint.current.scrollLeft = field.current.scrollLeft;
    }
  };

  const common = {
    id,
    value,
    placeholder,
    error: Boolean(error),
    spellCheck: false,
    autoComplete: "off",
    "aria-autocomplete": "list" as const,
    "aria-controls": chosen ? `${id}-offers` : undefined,
    "aria-activedescendant": chosen ? `${id}-${chosen.name}` : undefined,
    classNames: { input: styles.input ?? "", wrapper: styles.wrapper ?? "" },
    onKeyUp: (event: KeyboardEvent<Field>) => {
      if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) look(event);
    },
    onChange: (event: ChangeEvent<Field>) => {
      onChange(event.currentTarget.value);
      look(event);
    },
    onClick: look,
    onKeyDown,
    onScroll: follow,
    onBlur: () => setOpen(undefined),
  };
  return (
    <Input.Wrapper id={id} error={error} label={label}>
      <div className={styles.field}>
        <div ref={tint} className={lines ? `${styles.tint} ${styles.lines}` : styles.tint} aria-hidden="true">
          {marked(value, error)}
        </div>
        {lines ? (
          <Input component="textarea" multiline rows={4} ref={field as RefObject<HTMLTextAreaElement>} {...common} />
        ) : (
          <Input ref={field as RefObject<HTMLInputElement>} {...common} />
        )}
        <button
          type="button"
          className={`${buttonClass("quiet")} ${styles.insert}`}
          aria-label={`Insert a variable into ${label}`}
          onClick={insert}
        >
          {"{{ }}"}
        </button>
        {chosen && (
          <div className={styles.offers} id={`${id}-offers`} role="listbox" aria-label="Variables">
            {offered.map((variable) => (
              <div
                key={variable.name}
                id={`${id}-${variable.name}`}
                role="option"
                tabIndex={-1}
                aria-selected={variable === chosen}
                className={styles.offer}
                onPointerDown={(event) => {
                  event.preventDefault();
                  put(variable);
                }}
              >
                <code>{variable.name}</code>
                <span>{variable.description}</span>
              </div>
            ))}
          </div>
        )}
      </div>
    </Input.Wrapper>
  );
}

function marked(value: string, error: string | undefined) {
  let at = 0;
  return pieces(value, error).map(({ text, look }) => {
    const key = at;
    at += text.length;
    if (look === "plain") return <span key={key}>{text}</span>;
    return (
      <mark key={key} className={look === "wrong" ? styles.wrong : styles.tag}>
        {text}
      </mark>
    );
  });
}
