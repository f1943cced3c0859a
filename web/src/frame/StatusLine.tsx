import { useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { useLive } from "../api/LiveProvider";
import { systemStatus } from "../api/status";
import { facts } from "./facts";
import styles from "./StatusLine.module.css";

/** One thin line that tells the truth about the connection and the engine. */
export function StatusLine() {
  const live = useLive();
  const connection = useSyncExternalStore(live.subscribe, live.current);
  const { data: status, isError } = useQuery(systemStatus());
  return (
    <div className={styles.line} role="status" aria-label="State of Tocsin">
      {facts(connection, status, !isError).map(({ key, text, tone }) => (
        <span key={key} className={`${styles.fact} ${styles[tone] ?? ""}`} title={text}>
          <span>{text}</span>
        </span>
      ))}
    </div>
  );
}
