import type { ReactNode } from "react";
import { useArrival } from "./arrival";
import styles from "./Page.module.css";
import { StatusLine } from "./StatusLine";
import { useKeptScroll } from "./useKeptScroll";

interface Props {
  title: string;
  /** The title is only for screen readers, if the header shows it in another way. */
  titleHidden?: boolean;
  header?: ReactNode;
  actions?: ReactNode;
  /** Whether the header has more than a laptop is wide, and takes two lines there. */
  crowded?: boolean;
  /** Without a header of its own, but for the line of status. */
  bare?: boolean;
  /** Whether the body scrolls as a whole. */
  scrolls?: boolean;
  children: ReactNode;
}

/** What every page has: a title, a header, the line that tells how fresh it is, and the body. */
export function Page({
  title,
  titleHidden = false,
  header,
  actions,
  crowded = false,
  bare = false,
  scrolls = false,
  children,
}: Props) {
  const heading = useArrival(title);
  const body = useKeptScroll();
  return (
    <div className={styles.page}>
      {bare ? (
        <h1 ref={heading} tabIndex={-1} className={styles.hidden}>
          {title}
        </h1>
      ) : (
        <header
          className={[styles.header, header && styles.wraps, crowded && styles.crowded].filter(Boolean).join(" ")}
        >
          <h1 ref={heading} tabIndex={-1} className={titleHidden ? styles.hidden : ""}>
            {title}
          </h1>
          {header}
          {actions && <div className={styles.actions}>{actions}</div>}
        </header>
      )}
      <StatusLine />
      <div ref={scrolls ? body : undefined} className={scrolls ? `${styles.body} ${styles.scrolls}` : styles.body}>
        {children}
      </div>
    </div>
  );
}
