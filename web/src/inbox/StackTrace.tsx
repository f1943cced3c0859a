import { useState } from "react";
import { counted } from "../ui/words";
import styles from "./AlertDetail.module.css";
import { readStack, type StackPart } from "./stack";

/** A stack in which the reader's own frames stand out and runs of library frames are folded. */
export function StackTrace({ stack }: { stack: string }) {
  return (
    <section className={styles.stack} aria-label="Stack">
      {readStack(stack).map((part, index) => (
        // A stack never changes, so a part is known by its place.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above.
        <Part key={index} part={part} />
      ))}
    </section>
  );
}

function Part({ part }: { part: StackPart }) {
  const [open, setOpen] = useState(false);
  if (part.kind !== "library") return <div className={`${styles.frame} ${styles[part.kind]}`}>{part.text}</div>;
  if (open || part.lines.length === 1) {
    return part.lines.map((line, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a stack never change.
      <div key={index} className={`${styles.frame} ${styles.library}`}>
        {line}
      </div>
    ));
  }
  return (
    <button type="button" className={styles.folded} onClick={() => setOpen(true)}>
      {counted(part.lines.length, "library frame")}
    </button>
  );
}
