import type { Alert, AlertGroup } from "../api/client";
import { Ago } from "../ui/Instant";
import { IconPerson } from "../ui/icons";
import { listed } from "../ui/words";
import styles from "./AlertRow.module.css";

/** Who has acknowledged an alert, and when; empty if nobody has. */
export function Owner({ of, stop = false }: { of: Alert | AlertGroup; stop?: boolean }) {
  const who = typeof of.acknowledgedBy === "string" ? [of.acknowledgedBy] : (of.acknowledgedBy ?? []);
  if (who.length === 0 || of.acknowledgedAt === undefined) return null;
  return (
    <span className={styles.owner}>
      <IconPerson size={13} stroke={2} aria-hidden="true" />
      <span className={styles.ownerName}>
        <span className="visually-hidden">Acknowledged by </span>
        {listed(who)}
      </span>{" "}
      <Ago at={of.acknowledgedAt} stop={stop} />
    </span>
  );
}
