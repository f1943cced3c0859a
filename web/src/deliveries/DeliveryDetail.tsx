import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { MessageBody, Notification } from "../api/client";
import { reasonOf } from "../api/errors";
import { discardNotification, oneNotification, refreshDeliveries, retryNotification } from "../api/notifications";
import { ruleNames } from "../api/rules";
import { Button } from "../ui/Button";
import { ConfirmDialog } from "../ui/ConfirmDialog";
import { CopyButton } from "../ui/CopyButton";
import { ExactTime } from "../ui/Instant";
import { IconDiscarded, IconRetrying } from "../ui/icons";
import { DetailFrame, Field, Fields } from "../ui/MasterDetail";
import { StatusMark } from "../ui/marks";
import { useAtNow } from "../ui/now";
import { Failed, SkeletonRows } from "../ui/states";
import { useToast } from "../ui/toast";
import { messagesWord } from "../ui/words";
import { AttemptMarks } from "./AttemptMarks";
import { AttemptView, RetryView } from "./AttemptView";
import { Due } from "./Due";
import styles from "./deliveries.module.css";
import { discardable, readable, retryWord, steps, subject } from "./words";

interface Props {
  id: string;
  alone: boolean;
  /** Whether the reader's role may send and discard messages. */
  may: boolean;
}

/** The open message: its target, each attempt, and the actions of people. */
export function DeliveryDetail({ id, alone, may }: Props) {
  const { data: notification, error, refetch } = useQuery(oneNotification(id));
  return (
    <DetailFrame
      label="Message"
      content="Attempts and responses"
      list="/deliveries"
      back="Back to the deliveries"
      alone={alone}
      actions={
        notification &&
        may && (
          <>
            <Retry notification={notification} />
            <Discard notification={notification} />
          </>
        )
      }
    >
      {notification ? (
        <Body notification={notification} />
      ) : error ? (
        <Failed error={error} onRetry={refetch} />
      ) : (
        <SkeletonRows count={6} height={60} label="Loading the message" />
      )}
    </DetailFrame>
  );
}

function Retry({ notification }: { notification: Notification }) {
  const cache = useQueryClient();
  const toast = useToast();
  const [asking, setAsking] = useState(false);
  const again = notification.attemptCount > 0 ? " again" : "";
  const retry = useMutation({
    mutationFn: () => retryNotification(notification.id),
    onSuccess: () => {
      setAsking(false);
      toast(`The message will be sent${again}.`, "done");
    },
    onError: (error) => {
      if (!asking) toast(`The message was not sent${again}. ${reasonOf(error)}`, "failed");
    },
    onSettled: () => refreshDeliveries(cache),
  });
  const word = retryWord(notification);
  if (word === undefined) return null;
  const delivered = notification.status === "DELIVERED";
  return (
    <>
      <Button
        look={delivered ? "plain" : "primary"}
        busy={retry.isPending}
        onClick={() => (delivered ? setAsking(true) : retry.mutate())}
      >
        <IconRetrying size={16} aria-hidden="true" />
        {word}
      </Button>
      {asking && (
        <ConfirmDialog
          title="Send the message again?"
          action="Send again"
          busy={retry.isPending}
          error={retry.error}
          onConfirm={() => retry.mutate()}
          onClose={() => setAsking(false)}
        >
          The receiver has already accepted this message. It gets the message again under a new ID and cannot recognise
          the duplicate.
        </ConfirmDialog>
      )}
    </>
  );
}

function Discard({ notification }: { notification: Notification }) {
  const cache = useQueryClient();
  const toast = useToast();
  const discard = useMutation({
    mutationFn: () => discardNotification(notification.id),
    onSuccess: () => toast("The message was discarded.", "done"),
    onError: (error) => toast(`The message was not discarded. ${reasonOf(error)}`, "failed"),
    onSettled: () => refreshDeliveries(cache),
  });
  if (!discardable(notification)) return null;
  return (
    <Button busy={discard.isPending} onClick={() => discard.mutate()}>
      <IconDiscarded size={16} aria-hidden="true" />
      Discard
    </Button>
  );
}

function Body({ notification }: { notification: Notification }) {
  const {
    id,
    status,
    webhookId,
    webhookName,
    alertId,
    alertTitle,
    ruleId,
    digestId,
    reason,
    lastError,
    suppressedBy,
    attempts = [],
  } = notification;
  const { data: rules } = useQuery(ruleNames());
  const rule = rules?.find((one) => one.id === ruleId);
  const line = steps(notification);
  const last = line.findLast((step) => step.kind === "attempt");
  return (
    <>
      <div className={styles.marks}>
        <StatusMark status={status} />
        <AttemptMarks
          verdicts={attempts.map(({ verdict }) => verdict)}
          count={attempts.length}
          settled={notification.settledAt !== undefined}
        />
      </div>
      <h2 className={styles.heading}>
        {subject(notification)} to {webhookName || "deleted webhook"}
      </h2>
      {status !== "DELIVERED" && lastError && <p className={styles.lastError}>{lastError}</p>}

      <Fields>
        {suppressedBy && (
          <Field name="Suppressed by">
            <Link to="/silences/$silenceId" params={{ silenceId: suppressedBy.id }}>
              {suppressedBy.name}
            </Link>{" "}
            by {suppressedBy.createdBy}
          </Field>
        )}
        <Field name="Webhook">
          <Link to="/webhooks" hash={webhookId}>
            {webhookName || "deleted webhook"}
          </Link>
        </Field>
        {alertId && (
          <Field name="Alert">
            <Link to="/inbox/$alertId" params={{ alertId }}>
              {alertTitle ?? alertId}
            </Link>
          </Field>
        )}
        {ruleId && (
          <Field name="Rule">
            <Link to="/rules/$ruleId" params={{ ruleId }}>
              {rule?.name ?? (rules ? "deleted rule" : "…")}
            </Link>
          </Field>
        )}
        {reason === "DIGEST" && (
          <Field name="Contains">
            <Link to="/deliveries" search={{ digest: [id] }}>
              {messagesWord(notification.digestSize ?? 0)}
            </Link>
          </Field>
        )}
        {digestId && (
          <Field name="Sent in">
            <Link to="/deliveries/$notificationId" params={{ notificationId: digestId }} search={true}>
              a digest of {messagesWord(notification.digestSize ?? 0)}
            </Link>
          </Field>
        )}
        <Field name="Created">
          <ExactTime at={notification.createdAt} />
        </Field>
        {notification.nextAttemptAt && (
          <Field name="Next attempt">
            <Next at={notification.nextAttemptAt} webhookId={webhookId} />
          </Field>
        )}
        {notification.quietUntil && (
          <Field name="Held until">
            <ExactTime at={notification.quietUntil} />, because of the webhook’s quiet hours
          </Field>
        )}
        {!notification.nextAttemptAt && !notification.quietUntil && !notification.settledAt && (
          <Field name="Next attempt">once earlier messages about the alert have been delivered or have failed</Field>
        )}
        {notification.settledAt && (
          <Field name="Completed">
            <ExactTime at={notification.settledAt} />
          </Field>
        )}
        <Field name="Message ID">
          <span className="mono">{id}</span>
          <CopyButton text={id} what="the message ID" />
        </Field>
      </Fields>

      {notification.body && <Sent body={notification.body} />}

      <section className={styles.section}>
        <h3>Attempts</h3>
        {line.length === 0 && <p className={styles.nothing}>{notification.settledAt ? "None." : "None yet."}</p>}
        <ol className={styles.steps}>
          {line.map((step) => (
            <li key={`${step.kind} ${step.at}`}>
              {step.kind === "retry" ? (
                <RetryView at={step.at} by={step.by} />
              ) : (
                <AttemptView attempt={step.attempt} open={step === last} />
              )}
            </li>
          ))}
        </ol>
      </section>
    </>
  );
}

/** When the next attempt is. An instant in the past has no meaning here. */
function Next({ at, webhookId }: { at: string; webhookId: string }) {
  const isAhead = useAtNow((now) => Date.parse(at) > now);
  return (
    <>
      {isAhead && (
        <>
          <ExactTime at={at} /> ·{" "}
        </>
      )}
      <Due at={at} webhookId={webhookId} />
    </>
  );
}

/** What is sent, as far as it is stored. */
function Sent({ body: { contentType, text, truncated } }: { body: MessageBody }) {
  return (
    <section className={styles.section}>
      <h3>
        Body <CopyButton text={text} what="the body" />
      </h3>
      <p className={styles.nothing}>
        {contentType}
        {truncated && ", first 64 KiB"}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by key. */}
      <pre className={styles.body} tabIndex={0}>
        {readable(text)}
      </pre>
    </section>
  );
}
