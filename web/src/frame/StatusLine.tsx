import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useSyncExternalStore } from "react";
import { useLive } from "../api/LiveProvider";
import { failedCounts } from "../api/notifications";
import { systemStatus } from "../api/status";
import { announcement, facts } from "./facts";
import styles from "./StatusLine.module.css";
import { useOutdated } from "./useOutdated";

/** One thin line about the connection and the engine. */
export function StatusLine() {
  const live = useLive();
  const connection = useSyncExternalStore(live.subscribe, live.current);
  const { data: status, isError } = useQuery(systemStatus());
  const { data: counts } = useQuery(failedCounts());
  const outdated = useOutdated(status?.version);
  const shown = facts(connection, status, !isError, counts);
  return (
    <>
      <section className={styles.line} aria-label="Tocsin status">
        {outdated && (
          <span className={`${styles.fact} ${styles.warn}`}>
            Tocsin has been updated.
            <button type="button" className={styles.reload} onClick={() => globalThis.location.reload()}>
              Reload
            </button>
          </span>
        )}
        {shown.map(({ key, text, tone, deliveries }) => (
          <span key={key} className={`${styles.fact} ${styles[tone] ?? ""}`} title={text}>
            {deliveries ? (
              <Link to="/deliveries" search={{ status: [...deliveries] }} className={styles.to}>
                {text}
              </Link>
            ) : (
              <span>{text}</span>
            )}
          </span>
        ))}
      </section>
      {/* The line itself changes every few seconds. Screen readers hear only what begins and what ends. */}
      <p className="visually-hidden" role="status" aria-label="Problems">
        {[outdated ? "Tocsin has been updated. Reload the page." : "", announcement(shown)].filter(Boolean).join(" ")}
      </p>
    </>
  );
}
