import { Link } from "@tanstack/react-router";
import type { Notification } from "../api/client";
import { Ago } from "../ui/Instant";
import { StatusMark } from "../ui/marks";
import { useNow } from "../ui/now";
import { AttemptMarks } from "./AttemptMarks";
import styles from "./deliveries.module.css";
import { told } from "./words";

interface Props {
  notification: Notification;
  /** Undefined of a digest, and while it is not known. */
  ruleName: string | undefined;
  selected: boolean;
  narrow: boolean;
}

/** A message in a list: what became of it, where it goes, what it tells. */
export function DeliveryRow({ notification, ruleName, selected, narrow }: Props) {
  const {
    id,
    webhookName,
    status,
    lastError,
    nextAttemptAt,
    settledAt,
    createdAt,
    verdicts = [],
    attemptCount,
  } = notification;
  const className = [styles.row, narrow ? styles.narrow : "", selected ? styles.selected : ""];
  return (
    <Link
      to="/deliveries/$notificationId"
      params={{ notificationId: id }}
      search={true}
      className={className.filter(Boolean).join(" ")}
      aria-current={selected ? "true" : undefined}
    >
      <span className={styles.status}>
        <StatusMark status={status} />
      </span>
      <span className={styles.what}>
        <span className={styles.title}>
          <b>{webhookName || "a deleted webhook"}</b> · {told(notification)}
          {ruleName && ` · ${ruleName}`}
        </span>
        {status !== "DELIVERED" && lastError && <span className={styles.error}>{lastError}</span>}
      </span>
      <span className={styles.attempts}>
        <AttemptMarks verdicts={verdicts} count={attemptCount} />
      </span>
      {nextAttemptAt ? (
        <span className={styles.next}>
          <Due at={nextAttemptAt} />
        </span>
      ) : (
        <span className={`${styles.next} ${styles.settled}`}>
          {settledAt && (
            <>
              settled <Ago at={settledAt} />
            </>
          )}
        </span>
      )}
      <span className={styles.ago}>
        <Ago at={createdAt} />
      </span>
    </Link>
  );
}

/** When it is tried; what is due waits for its turn, or for its webhook. */
function Due({ at }: { at: string }) {
  const now = useNow();
  return Date.parse(at) <= now ? (
    "due now"
  ) : (
    <>
      next try <Ago at={at} />
    </>
  );
}
