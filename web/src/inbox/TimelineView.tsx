import type { Icon } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Alert, Attempt, Notification, WindowCount } from "../api/client";
import { When } from "../ui/Instant";
import { IconReminder, IconUnknown, IconWaiting } from "../ui/icons";
import { stateMeaning, statusMeaning } from "../ui/marks";
import { exactTime, took } from "../ui/time";
import { counted, number } from "../ui/words";
import styles from "./AlertDetail.module.css";
import { thresholdWords } from "./headline";
import { answerWord, digestWord, exchangeText, type Happening, reasonWord, timeline, verdictWords } from "./timeline";

/** What happened to an alert and to its messages, on one timeline. */
export function TimelineView({ alert, notifications }: { alert: Alert; notifications: readonly Notification[] }) {
  return (
    <ol className={styles.timeline}>
      {timeline(alert, notifications).map((happening) => (
        <Entry key={keyOf(happening)} happening={happening} alert={alert} />
      ))}
    </ol>
  );
}

function keyOf(h: Happening): string {
  switch (h.kind) {
    case "attempt":
      // A digest's attempts and the notification's own are numbered apart.
      return `${h.notification.id}/${h.at}/${h.attempt.number}`;
    case "settled":
    case "next":
      return `${h.notification.id}/${h.kind}`;
    case "reminded":
    case "woke":
    case "escalated":
      return `${h.kind}/${h.at}`;
    default:
      return h.kind;
  }
}

function Entry({ happening: h, alert }: { happening: Happening; alert: Alert }) {
  switch (h.kind) {
    case "reached":
      return (
        <Line
          look={stateMeaning.PENDING}
          at={h.at}
          what={<b>Reached the threshold</b>}
          more="It fires if this continues for as long as the rule requires. No messages have been sent."
        />
      );
    case "reminded":
      return <Line look={{ icon: IconReminder, hue: "var(--firing)" }} at={h.at} what={<b>Still firing</b>} />;
    case "woke":
      return <Line look={{ icon: IconReminder, hue: "var(--firing)" }} at={h.at} what={<b>Snooze ended</b>} />;
    case "escalated":
      return (
        <Line
          look={{ icon: IconReminder, hue: "var(--firing)" }}
          at={h.at}
          what={<b>Escalated</b>}
          more="Nobody had acknowledged it."
        />
      );
    case "fired":
      return <Line look={stateMeaning.FIRING} at={h.at} what={<b>Fired</b>} />;
    case "acknowledged":
      return <Line look={stateMeaning.ACKNOWLEDGED} at={h.at} what={<ByWhom word="Acknowledged" by={h.by} />} />;
    case "snoozed":
      return (
        <Line
          look={{ icon: IconWaiting, hue: "var(--text-2)" }}
          at={h.at}
          what={
            <>
              <ByWhom word="Snoozed" by={h.by} /> until {exactTime(h.until)}
            </>
          }
        />
      );
    case "resolved":
      return <Line look={stateMeaning.RESOLVED} at={h.at} what={resolution(alert, h.by)} />;
    case "attempt":
      return <AttemptLine at={h.at} attempt={h.attempt} notification={h.notification} />;
    case "settled":
      return (
        <Line
          look={statusMeaning[h.notification.status]}
          at={h.at}
          what={
            <>
              <b>{statusMeaning[h.notification.status].word}</b> · {address(h.notification)}
            </>
          }
          more={endWords(h.notification)}
        />
      );
    case "next":
      return (
        <Line
          look={{ icon: IconWaiting, hue: "var(--retrying)" }}
          at={h.at}
          what={
            <>
              {h.notification.quietUntil
                ? "Held by quiet hours until then"
                : h.notification.attemptCount === 0
                  ? "Waiting to be sent"
                  : "Next attempt"}{" "}
              · {address(h.notification)}
            </>
          }
        />
      );
  }
}

/** How a message ended without an attempt. */
function endWords(notification: Notification): ReactNode {
  const { status, attemptCount, suppressedBy: by } = notification;
  switch (status) {
    case "EXHAUSTED":
      return `All ${counted(attemptCount, "attempt")} failed. The message was not delivered.`;
    case "DISCARDED":
      return "It will not be sent.";
    case "SUPPRESSED":
      if (!by) return "A silence was active.";
      return (
        <>
          Silence{" "}
          <Link to="/silences/$silenceId" params={{ silenceId: by.id }}>
            {by.name}
          </Link>{" "}
          by {by.createdBy}
          {by.endsAt ? <>, until {exactTime(by.endsAt)}</> : ", recurring"}
          {by.reason && <>: {by.reason}</>}
        </>
      );
    default:
      return "The receiver refused the message permanently.";
  }
}

/** Why an alert of a window rule is over. */
function below(count: WindowCount): string {
  switch (count.fireMode) {
    case undefined:
    case "COUNT_IN_WINDOW":
      return `fewer than ${number(count.threshold)} match`;
    case "RATIO_IN_WINDOW":
    case "DURATION_IN_WINDOW":
      return `below ${thresholdWords(count)}`;
    case "ABSENT_IN_WINDOW":
      return "exchanges are arriving again";
    default:
      return "the condition of the rule no longer holds";
  }
}

/** An alert that is not about a single exchange resolves by itself, unless a person is faster. */
function resolution({ count, health, heldUntil, resolution: cause }: Alert, by: string | undefined) {
  if (cause?.reason === "AGE") {
    return (
      <>
        <b>Resolved by age</b>, as its rule specifies
      </>
    );
  }
  if (cause?.reason === "EDIT") {
    return (
      <>
        <b>Resolved by an edit</b>: the rule no longer counts what the alert is about
      </>
    );
  }
  if (cause?.executionId) {
    const { executionId, startedAt } = cause;
    return (
      <>
        <b>Resolved by evidence</b>: exchange{" "}
        <Link to="/explain" search={{ executionId, ...(startedAt ? { startTime: startedAt } : {}) }}>
          {executionId}
        </Link>{" "}
        completed{startedAt && `, started ${exactTime(startedAt)}`}
      </>
    );
  }
  if (by && heldUntil) {
    return (
      <>
        <b>Resolved</b> by {by}; nothing fires for it until {exactTime(heldUntil)}
      </>
    );
  }
  if (by || !(count || health)) return <ByWhom word="Resolved" by={by} />;
  return (
    <>
      <b>Resolved</b> · {count ? below(count) : "the rule can be evaluated again"}
    </>
  );
}

function ByWhom({ word, by }: { word: string; by: string | undefined }) {
  return (
    <>
      <b>{word}</b>
      {by && ` by ${by}`}
    </>
  );
}

function AttemptLine({ at, attempt, notification }: { at: string; attempt: Attempt; notification: Notification }) {
  const { word, explanation } = verdictWords(attempt);
  const facts = [answerWord(attempt), attempt.durationMs === undefined ? "" : took(attempt.durationMs)].filter(Boolean);
  return (
    <Line
      look={lookOf(attempt)}
      at={at}
      what={
        <>
          <b>{word}</b> · {address(notification)}
          <span className={styles.facts}>
            attempt {attempt.number}
            {facts.map((fact) => ` · ${fact}`)}
          </span>
        </>
      }
      more={[attempt.error, explanation].filter(Boolean).join(" ")}
      response={attempt.verdict === "DELIVERED" ? "" : (attempt.response ?? "")}
      exchange={exchangeText(attempt)}
    />
  );
}

function lookOf(attempt: Attempt): { icon: Icon; hue: string } {
  switch (attempt.verdict) {
    case "DELIVERED":
      return statusMeaning.DELIVERED;
    case "RETRY":
    case "THROTTLED":
      return statusMeaning.RETRYING;
    case "REFUSED":
    case "GONE":
      return statusMeaning.FAILED;
    case "UNDER_WAY":
    case "UNKNOWN":
    case "NOT_MADE":
      return { icon: IconUnknown, hue: "var(--text-2)" };
  }
}

function webhookName(notification: Notification): string {
  return notification.webhookName || "deleted webhook";
}

/** The webhook, what it is notified of, and by which message. */
function address(notification: Notification): string {
  const to = [reasonWord(notification), webhookName(notification)].filter(Boolean).join(" to ");
  return [to, digestWord(notification)].filter(Boolean).join(", ");
}

interface LineProps {
  look: { icon: Icon; hue: string };
  at: string;
  what: ReactNode;
  more?: ReactNode;
  response?: string;
  exchange?: string;
}

function Line({ look, at, what, more, response, exchange }: LineProps) {
  return (
    <li className={styles.happening}>
      <span className={styles.dot} style={{ color: look.hue }}>
        <look.icon size={16} stroke={1.9} aria-hidden="true" />
      </span>
      <span className={styles.what}>{what}</span>
      <span className={styles.when}>
        <When at={at} stop />
      </span>
      {more && <p className={styles.more}>{more}</p>}
      {response && <pre className={styles.response}>{response}</pre>}
      {exchange && (
        <details className={styles.more}>
          <summary>Request and response</summary>
          <pre className={styles.response}>{exchange}</pre>
        </details>
      )}
    </li>
  );
}
