import { useQuery } from "@tanstack/react-query";
import { usualDuration } from "../api/alerts";
import { duration } from "../ui/time";
import styles from "./AlertDetail.module.css";
import { usualBar } from "./usual";

/** How long the exchange took, on a bar with the usual durations of its route, which are loaded later. */
export function UsualDuration({ alertId, took }: { alertId: string; took: string }) {
  const { data, isPending } = useQuery(usualDuration(alertId));
  const bar = usualBar(took, data?.medianNs, data?.p95Ns);
  const percent = (part: number) => `${part * 100}%`;
  return (
    <div className={styles.usual}>
      <span>
        {duration(took)}
        {bar && <span className={styles.usualWords}>, {bar.words}</span>}
      </span>
      {bar && data ? (
        <>
          <div className={styles.usualBar} aria-hidden="true">
            <span
              className={styles.usualRange}
              style={{ left: percent(bar.median), width: percent(bar.p95 - bar.median) }}
            />
            <span className={styles.usualMedian} style={{ left: percent(bar.median) }} />
            <span className={styles.usualTook} style={{ width: percent(bar.took) }} />
          </div>
          <span className={styles.usualWords}>
            Median {duration(data.medianNs ?? "")}, 95th percentile {duration(data.p95Ns ?? "")}
          </span>
        </>
      ) : (
        <span className={styles.usualWords}>
          {isPending
            ? "Loading the usual duration…"
            : data
              ? "No usual duration yet: fewer than 20 exchanges completed in the 24 hours before."
              : ""}
        </span>
      )}
    </div>
  );
}
