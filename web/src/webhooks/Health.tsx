import type { Webhook } from "../api/client";
import { Ago } from "../ui/Instant";
import { IconBan, IconCheck, IconPause, IconWaiting } from "../ui/icons";
import { useAtNow } from "../ui/now";
import { counted } from "../ui/words";
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
          Its URL and secrets cannot be decrypted: {secretsProblem}, or enter them again. Its messages wait until then.
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
            <IconCheck size={15} stroke={2} aria-hidden="true" /> Enabled
            {ratePerSecond > 0 && (
              <span className={`${styles.more} ${styles.rate}`}>up to {ratePerSecond} per second</span>
            )}
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
            The receiver asked for a pause
            {until && (
              <>
                ; sending resumes <Ahead at={until} />
              </>
            )}
            .
          </p>
        </div>
      );
    case "open":
      return (
        <div className={styles.health}>
          <p className={styles.broken}>
            <IconPause size={15} stroke={2} aria-hidden="true" /> Not responding
          </p>
          <p className={styles.more}>
            {counted(consecutiveFailures, "failed attempt")} in a row{since && <>, since {<Ago at={since} />}</>}
            {until && (
              <>
                ; next probe <Ahead at={until} />
              </>
            )}
            .{lastError && ` ${lastError}`}
          </p>
        </div>
      );
    case "off":
      return (
        <div className={styles.health}>
          <p className={disabledReason ? styles.broken : styles.off}>
            <IconBan size={15} stroke={2} aria-hidden="true" /> Disabled
          </p>
          <p className={styles.more}>
            {disabledReason || "Disabled by a user"}. Its messages wait until it is enabled.
          </p>
        </div>
      );
  }
}

/** When something is next. Between the instant and the next answer of the server, it is about to happen. */
function Ahead({ at }: { at: string }) {
  const isAhead = useAtNow((now) => Date.parse(at) > now);
  return isAhead ? <Ago at={at} /> : "soon";
}
