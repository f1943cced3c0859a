import type { Alert, AlertGroup } from "../api/client";
import { Ago } from "../ui/Instant";
import { IconPerson } from "../ui/icons";
import { listed } from "../ui/words";
import styles from "./AlertRow.module.css";

/** An e-mail address without its domain, because a row has little room. */
export const shortName = (name: string) => name.replace(/@.*$/, "");

interface Props {
  of: Alert | AlertGroup;
  /** Outside of a row, where the name has room and Tab reaches the time. */
  inFull?: boolean;
}

/** Who has acknowledged an alert, and when; empty if nobody has. */
export function Owner({ of, inFull = false }: Props) {
  const who = typeof of.acknowledgedBy === "string" ? [of.acknowledgedBy] : (of.acknowledgedBy ?? []);
  if (who.length === 0 || of.acknowledgedAt === undefined) return null;
  return (
    <span className={styles.owner}>
      <IconPerson size={13} stroke={2} aria-hidden="true" />
      <span className={styles.ownerName}>
        <span className="visually-hidden">Acknowledged by {!inFull && listed(who)}</span>
        {inFull ? listed(who) : <span aria-hidden="true">{listed(who.map(shortName))}</span>}
      </span>{" "}
      <Ago at={of.acknowledgedAt} stop={inFull} />
    </span>
  );
}
