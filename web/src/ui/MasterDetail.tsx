import { useMediaQuery } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import { buttonClass } from "./Button";
import { IconBack, IconClose } from "./icons";
import styles from "./MasterDetail.module.css";

const splitFrom = "(min-width: 1024px)";

/** Whether a list and its open item fit next to each other; otherwise the open item replaces the list. */
export function useSplit(): boolean {
  return useMediaQuery(splitFrom, window.matchMedia(splitFrom).matches);
}

/** A list, and beside it the open item. */
export function MasterDetail({ list, detail }: { list: ReactNode; detail: ReactNode | undefined }) {
  return (
    <div className={detail ? `${styles.panes} ${styles.split}` : styles.panes}>
      <div className={styles.list}>{list}</div>
      {detail}
    </div>
  );
}

interface FrameProps {
  /** What is open: "Alert". */
  label: string;
  /** The label of the scrolling part. */
  content: string;
  /** The list that the item was opened from. */
  list: "/inbox" | "/deliveries";
  back: string;
  /** Whether it is shown without its list. */
  alone: boolean;
  actions?: ReactNode;
  /** Next to the button that leads back. */
  end?: ReactNode;
  children: ReactNode;
}

/** The frame of the open item: actions on top, the way back, and a part that scrolls. */
export function DetailFrame({ label, content, list, back, alone, actions, end, children }: FrameProps) {
  const reading = useRef<HTMLElement>(null);
  // On a phone it replaces the list, and takes the focus, which was on a row that is gone.
  useEffect(() => {
    if (alone) reading.current?.focus();
  }, [alone]);
  return (
    <article className={styles.detail} aria-label={label}>
      <div className={styles.bar}>
        {alone && (
          <Link to={list} search={true} className={buttonClass("quiet", true)} aria-label={back}>
            <IconBack size={18} aria-hidden="true" />
          </Link>
        )}
        <div className={styles.actions}>{actions}</div>
        <div className={styles.ends}>
          {end}
          {!alone && (
            <Link to={list} search={true} className={buttonClass("quiet", true)} aria-label="Close" title="Close (Esc)">
              <IconClose size={17} aria-hidden="true" />
            </Link>
          )}
        </div>
      </div>
      <section ref={reading} className={styles.scroll} aria-label={content} tabIndex={-1}>
        {children}
      </section>
    </article>
  );
}

/** A name and a value, within a list of fields. */
export function Field({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.pair}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Fields next to each other if there is room. */
export function Fields({ children }: { children: ReactNode }) {
  return <dl className={styles.fields}>{children}</dl>;
}
