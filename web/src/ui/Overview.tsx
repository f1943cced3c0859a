import { type ReactNode, useId } from "react";
import styles from "./overview.module.css";

/** The figures of a page for a quick look, in a row that wraps. */
export function Figures({ busy = false, children }: { busy?: boolean; children: ReactNode }) {
  return (
    <dl className={styles.figures} aria-busy={busy || undefined}>
      {children}
    </dl>
  );
}

interface FigureProps {
  name: string;
  /** Whether the value needs attention. */
  bad?: boolean;
  /** The value as <b>, and its explanation as <span>. */
  children: ReactNode;
}

export function Figure({ name, bad = false, children }: FigureProps) {
  return (
    <div className={bad ? `${styles.figure} ${styles.bad}` : styles.figure}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

interface SectionProps {
  title: string;
  /** Beside the title. */
  more?: ReactNode;
  /** Whether the content has padding; a table brings its own. */
  inset?: boolean;
  children: ReactNode;
}

/** A titled part of a page. */
export function Section({ title, more, inset = false, children }: SectionProps) {
  const id = useId();
  return (
    <section className={inset ? `${styles.section} ${styles.inset}` : styles.section} aria-labelledby={id}>
      <div className={styles.title}>
        <h2 id={id}>{title}</h2>
        {more}
      </div>
      {children}
    </section>
  );
}
