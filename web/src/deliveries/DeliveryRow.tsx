import { Link } from "@tanstack/react-router";
import type { Notification } from "../api/client";
import { Ago } from "../ui/Instant";
import { StatusMark } from "../ui/marks";
import { between, exactTime, took } from "../ui/time";
import { AttemptMarks } from "./AttemptMarks";
import { Due } from "./Due";
import styles from "./deliveries.module.css";
import { subject } from "./words";

interface Props {
  notification: Notification;
  /** Undefined for a digest, and while it is unknown. */
  ruleName: string | undefined;
  selected: boolean;
  narrow: boolean;
}

/** A message in a list: its status, its target, its subject. */
export function DeliveryRow({ notification, ruleName, selected, narrow }: Props) {
  const {
    id,
    webhookId,
    webhookName,
    status,
    lastError,
    nextAttemptAt,
    quietUntil,
    settledAt,
    createdAt,
    alertTitle,
    verdicts = [],
    attemptCount,
    lastStatusCode,
    lastDurationMs,
  } = notification;
  const className = [styles.row, narrow ? styles.narrow : "", selected ? styles.selected : ""];
  return (
    <Link
      to="/deliveries/$notificationId"
      params={{ notificationId: id }}
      search={true}
      className={className.filter(Boolean).join(" ")}
      aria-current={selected ? "true" : undefined}
      data-delivery={id}
    >
      <span className={styles.status}>
        <StatusMark status={status} />
      </span>
      <span className={styles.what}>
        <span className={styles.title}>
          <b>{webhookName || "deleted webhook"}</b> · {subject(notification)}
          {ruleName && ` · ${ruleName}`}
        </span>
        {alertTitle && <span className={styles.about}>{alertTitle}</span>}
        {status !== "DELIVERED" && lastError && <span className={styles.error}>{lastError}</span>}
      </span>
      <span className={styles.attempts}>
        <AttemptMarks verdicts={verdicts} count={attemptCount} settled={settledAt !== undefined} />
      </span>
      <span className={styles.code}>
        {lastStatusCode !== undefined && (
          <>
            <span className="visually-hidden">response </span>
            {lastStatusCode}
          </>
        )}
      </span>
      <span className={styles.code}>
        {lastDurationMs !== undefined && (
          <>
            <span className="visually-hidden">latency </span>
            {took(lastDurationMs)}
          </>
        )}
      </span>
      {nextAttemptAt ? (
        <span className={styles.next}>
          <Due at={nextAttemptAt} webhookId={webhookId} />
        </span>
      ) : (
        <span className={settledAt ? `${styles.next} ${styles.settled}` : styles.next}>
          {settledAt && <Took from={createdAt} to={settledAt} />}
          {!settledAt && <Waits until={quietUntil} />}
        </span>
      )}
      <span className={styles.ago}>
        <Ago at={createdAt} />
      </span>
    </Link>
  );
}

/** What the message waits for: the end of the quiet hours of its webhook, or those before it. */
function Waits({ until }: { until: string | undefined }) {
  if (until === undefined) return "waits for earlier messages";
  return (
    <>
      held; due <Ago at={until} />
    </>
  );
}

/** How long it took from the alert until the message had arrived, or was given up. */
function Took({ from, to }: { from: string; to: string }) {
  return (
    <time dateTime={to} title={exactTime(to)}>
      after {between(from, to)}
    </time>
  );
}
