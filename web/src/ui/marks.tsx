import type { Icon } from "@tabler/icons-react";
import type { AlertState, NotificationStatus, Severity } from "../api/client";
import {
  IconAcknowledged,
  IconCritical,
  IconDelivered,
  IconDiscarded,
  IconExhausted,
  IconFailed,
  IconFiring,
  IconInfo,
  IconPending,
  IconResolved,
  IconRetrying,
  IconSilence,
  IconWaiting,
  IconWarning,
} from "./icons";
import styles from "./marks.module.css";

/** A meaning has one hue, one icon and one word, so that nothing depends only on the hue. */
interface Meaning {
  icon: Icon;
  word: string;
  hue: string;
}

export const severityMeaning: Record<Severity, Meaning & { short: string }> = {
  CRITICAL: { icon: IconCritical, word: "Critical", short: "CRIT", hue: "var(--critical)" },
  WARNING: { icon: IconWarning, word: "Warning", short: "WARN", hue: "var(--warning)" },
  INFO: { icon: IconInfo, word: "Info", short: "INFO", hue: "var(--info)" },
};

export const stateMeaning: Record<AlertState, Meaning> = {
  PENDING: { icon: IconWaiting, word: "Pending", hue: "var(--text-2)" },
  FIRING: { icon: IconFiring, word: "Firing", hue: "var(--firing)" },
  ACKNOWLEDGED: { icon: IconAcknowledged, word: "Acknowledged", hue: "var(--acknowledged)" },
  RESOLVED: { icon: IconResolved, word: "Resolved", hue: "var(--resolved)" },
};

export const statusMeaning: Record<NotificationStatus, Meaning> = {
  PENDING: { icon: IconPending, word: "Pending", hue: "var(--text-2)" },
  RETRYING: { icon: IconRetrying, word: "Retrying", hue: "var(--retrying)" },
  DELIVERED: { icon: IconDelivered, word: "Delivered", hue: "var(--delivered)" },
  FAILED: { icon: IconFailed, word: "Failed", hue: "var(--failed)" },
  EXHAUSTED: { icon: IconExhausted, word: "Exhausted", hue: "var(--exhausted)" },
  DISCARDED: { icon: IconDiscarded, word: "Discarded", hue: "var(--text-2)" },
  SUPPRESSED: { icon: IconSilence, word: "Suppressed", hue: "var(--text-2)" },
};

function Mark({ meaning, text, short }: { meaning: Meaning; text?: string; short?: boolean }) {
  return (
    <span className={short ? `${styles.mark} ${styles.short}` : styles.mark} style={{ color: meaning.hue }}>
      <meaning.icon size={15} stroke={1.9} aria-hidden="true" />
      {text ?? meaning.word}
    </span>
  );
}

export function SeverityMark({ severity, short }: { severity: Severity; short?: boolean }) {
  const meaning = severityMeaning[severity];
  return short ? <Mark meaning={meaning} text={meaning.short} short /> : <Mark meaning={meaning} />;
}

export function StateMark({ state }: { state: AlertState }) {
  return <Mark meaning={stateMeaning[state]} />;
}

export function StatusMark({ status }: { status: NotificationStatus }) {
  return <Mark meaning={statusMeaning[status]} />;
}
