import type { ReactNode } from "react";
import styles from "./AlertDetail.module.css";

/** A titled part of an alert's page. */
export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles.section}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}
