import type { Icon } from "@tabler/icons-react";
import type { DeliverySummary } from "../api/client";
import { IconDelivered, IconDiscarded, IconFailed, IconPending, IconRetrying, IconSilence } from "../ui/icons";
import { useAtNow } from "../ui/now";
import { ago } from "../ui/time";
import styles from "./AlertRow.module.css";
import { type DeliveryTone, deliveryWords } from "./delivery";

const looks: Record<DeliveryTone, { icon: Icon; hue: string }> = {
  delivered: { icon: IconDelivered, hue: "var(--delivered)" },
  pending: { icon: IconPending, hue: "var(--text-3)" },
  retrying: { icon: IconRetrying, hue: "var(--retrying)" },
  failed: { icon: IconFailed, hue: "var(--failed)" },
  suppressed: { icon: IconSilence, hue: "var(--text-3)" },
  discarded: { icon: IconDiscarded, hue: "var(--text-3)" },
};

interface Props {
  delivery: DeliverySummary;
  /** Which alerts it is about, where that is not obvious. */
  of?: string | undefined;
}

/** The state of the messages of an alert, or of several, at a glance. */
export function DeliveryMark({ delivery, of }: Props) {
  const next = useAtNow((now) => (delivery.nextAttemptAt ? ago(delivery.nextAttemptAt, now) : ""));
  const words = deliveryWords(delivery, next);
  if (!words) return null;
  const { icon: Icon, hue } = looks[words.tone];
  const long = of ? `${of}: ${words.long}` : words.long;
  return (
    <span className={styles.delivery} style={{ color: hue }} title={long}>
      <Icon size={14} stroke={1.9} aria-hidden="true" />
      <span aria-hidden="true">{words.short}</span>
      <span className="visually-hidden"> {long}</span>
    </span>
  );
}
