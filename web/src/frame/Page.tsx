import type { ReactNode } from "react";
import { useArrival } from "./arrival";
import styles from "./Page.module.css";
import { StatusLine } from "./StatusLine";

interface Props {
  title: string;
  /** The title is only for screen readers, if the header shows it in another way. */
  titleHidden?: boolean;
  header?: ReactNode;
  actions?: ReactNode;
  /** Without a header except for the status line. */
  bare?: boolean;
  /** Whether the body scrolls as a whole. */
  scrolls?: boolean;
  children: ReactNode;
}

/** The parts of every page: a title, a header, the line that shows how fresh it is, and the body. */
export function Page({ title, titleHidden = false, header, actions, bare = false, scrolls = false, children }: Props) {
  const heading = useArrival(title);
  return (
    <div className={styles.page}>
      {bare ? (
        <h1 ref={heading} tabIndex={-1} className={styles.hidden}>
          {title}
        </h1>
      ) : (
        <header className={header ? `${styles.header} ${styles.wraps}` : styles.header}>
          <h1 ref={heading} tabIndex={-1} className={titleHidden ? styles.hidden : ""}>
            {title}
          </h1>
          {header}
          {actions && <div className={styles.actions}>{actions}</div>}
        </header>
      )}
      <StatusLine />
      <div className={scrolls ? `${styles.body} ${styles.scrolls}` : styles.body}>{children}</div>
    </div>
  );
}
