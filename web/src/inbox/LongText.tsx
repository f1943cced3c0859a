import { type ReactNode, useState } from "react";
import styles from "./AlertDetail.module.css";

/** What is read at a glance. More would push the deliveries out of sight. */
const mostLines = 12;
const mostCharacters = 1_200;

/** A text of an exchange, which may have any length. The rest of a long one is shown when somebody asks. */
export function LongText({ text, className }: { text: string; className: string | undefined }): ReactNode {
  const [open, setOpen] = useState(false);
  const brief = beginningOf(text);
  if (brief === text) return <p className={className}>{text}</p>;
  return (
    <>
      <p className={className}>{open ? text : `${brief}…`}</p>
      <button type="button" className={styles.whole} aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Show less" : "Show full message"}
      </button>
    </>
  );
}

/** The first lines of a text; all of it, if that is not much more. */
export function beginningOf(text: string): string {
  const lines = text.split("\n").slice(0, mostLines).join("\n");
  const brief = [...lines.slice(0, 2 * mostCharacters)].slice(0, mostCharacters).join("");
  return brief.length * 1.25 >= text.length ? text : brief;
}
