import type { ReactNode } from "react";
import styles from "./access.module.css";

/** The page before the application: a card in the middle, with errors, or else news, above it. */
export function Entrance({
  title,
  problem,
  news,
  children,
}: {
  title: string;
  problem?: string | undefined;
  news?: string | undefined;
  children: ReactNode;
}) {
  return (
    <main className={styles.entrance}>
      <div className={styles.card}>
        <img src="/favicon.svg" width={40} height={40} alt="" />
        <h1>{title}</h1>
        {problem && (
          <p className={styles.problem} role="alert">
            {problem}
          </p>
        )}
        {!problem && news && <p role="status">{news}</p>}
        {children}
      </div>
    </main>
  );
}
