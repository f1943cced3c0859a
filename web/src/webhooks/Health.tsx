import type { Webhook } from "../api/client";
import { Ago } from "../ui/Instant";
import { IconBan, IconCheck, IconPause, IconWaiting } from "../ui/icons";
import styles from "./webhooks.module.css";

/** Whether messages flow to a webhook, and if not why, and what happens next. */
export function Health({ webhook }: { webhook: Webhook }) {
  const { health, secretsProblem } = webhook;
  if (secretsProblem === undefined) return <Flow webhook={webhook} />;
  return (
    <>
      <div className={styles.health}>
        <p className={styles.broken}>
          <IconBan size={15} stroke={2} aria-hidden="true" /> Cannot send
        </p>
        <p className={styles.more}>
          Its URL and secrets cannot be opened: {secretsProblem}, or enter all of them anew. What is owed waits.
        </p>
      </div>
      {health.state === "off" && <Flow webhook={webhook} />}
    </>
  );
}

function Flow({ webhook: { health, ratePerSecond } }: { webhook: Webhook }) {
  const { since, until, lastError, consecutiveFailures, disabledReason } = health;
  switch (health.state) {
    case "ok":
      return (
        <div className={styles.health}>
          <p className={styles.ok}>
            <IconCheck size={15} stroke={2} aria-hidden="true" /> On
            {ratePerSecond > 0 && <span className={styles.more}>at most {ratePerSecond} a second</span>}
          </p>
        </div>
      );
    case "held":
      return (
        <div className={styles.health}>
          <p className={styles.waits}>
            <IconWaiting size={15} stroke={2} aria-hidden="true" /> Held
          </p>
          <p className={styles.more}>
            The receiver asked for a pause{until && <>; it goes on {<Ago at={until} />}</>}.
          </p>
        </div>
      );
    case "open":
      return (
        <div className={styles.health}>
          <p className={styles.broken}>
            <IconPause size={15} stroke={2} aria-hidden="true" /> Does not answer
          </p>
          <p className={styles.more}>
            {consecutiveFailures} attempts in a row{since && <>, since {<Ago at={since} />}</>}
            {until && <>; next probe {<Ago at={until} />}</>}.{lastError && ` ${lastError}`}
          </p>
        </div>
      );
    case "off":
      return (
        <div className={styles.health}>
          <p className={disabledReason ? styles.broken : styles.off}>
            <IconBan size={15} stroke={2} aria-hidden="true" /> Off
          </p>
          <p className={styles.more}>{disabledReason || "Somebody switched it off"}. What is owed waits.</p>
        </div>
      );
  }
}
