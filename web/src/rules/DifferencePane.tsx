import type { ChangedAlerts, RuleDifference } from "../api/client";
import { Ago } from "../ui/Instant";
import { SkeletonRows } from "../ui/states";
import { alertsWord, number } from "../ui/words";
import { Trouble } from "./PreviewPane";
import styles from "./preview.module.css";
import type { Preview } from "./usePreview";

/** Which alerts saving the edit would have added, and which it would have removed. */
export function DifferencePane({ difference }: { difference: Preview<RuleDifference> }) {
  const { data, outdated, error, complaints, retry } = difference;
  if (complaints.length > 0) return null; // the preview says so
  return (
    <section className={styles.part} aria-labelledby="difference-title">
      <header className={styles.head}>
        <h2 id="difference-title">What this edit would have changed</h2>
      </header>
      {error != null && <Trouble error={error} onRetry={retry} />}
      {data === undefined && error == null && <SkeletonRows count={3} height={44} label="Loading the difference" />}
      <div aria-live="polite" className={outdated ? `${styles.live} ${styles.outdated}` : styles.live}>
        {data && <p className={styles.summary}>{differenceWords(data)}</p>}
        {data?.truncated && (
          <p className={styles.warn}>
            There are too many alerts to compare all of them. This covers those that fired since{" "}
            <Ago at={data.coveredFrom} stop />.
          </p>
        )}
      </div>
      {data && (
        <div className={outdated ? styles.outdated : ""} aria-busy={outdated}>
          <Changed title="Added" of={data.added} />
          <Changed title="Removed" of={data.removed} />
        </div>
      )}
    </section>
  );
}

/** "7 alerts would become 9: 3 more, 1 less." */
export function differenceWords({ before, after, added, removed }: RuleDifference): string {
  if (added.alerts + removed.alerts === 0) return `The same ${alertsWord(before)}.`;
  const parts = [
    added.alerts > 0 ? `${number(added.alerts)} added` : "",
    removed.alerts > 0 ? `${number(removed.alerts)} removed` : "",
  ];
  return `${alertsWord(before)} would become ${number(after)}: ${parts.filter(Boolean).join(", ")}.`;
}

const mostShown = 5;

/** The newest of some alerts that there would be. */
export function Changed({ title, of: { alerts, newest } }: { title: string; of: ChangedAlerts }) {
  if (newest.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul className={styles.newest}>
        {newest.slice(0, mostShown).map(({ id, title: headline, message, firedAt }) => (
          <li key={id}>
            <div className={styles.line}>
              <span className={styles.cut}>{headline}</span>
              <span className={styles.quiet}>
                <Ago at={firedAt} stop />
              </span>
            </div>
            <div className={`${styles.cut} ${styles.quiet}`}>{message}</div>
          </li>
        ))}
      </ul>
      {alerts > mostShown && (
        <p className={styles.quiet}>and {number(alerts - Math.min(mostShown, newest.length))} more</p>
      )}
    </>
  );
}
