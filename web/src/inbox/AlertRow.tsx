import { Link } from "@tanstack/react-router";
import type { Alert } from "../api/client";
import { ClockTime } from "../ui/Instant";
import { StateMark } from "../ui/marks";
import styles from "./AlertRow.module.css";
import { AssignedTo } from "./Assignee";
import { DeliveryMark } from "./DeliveryMark";
import { headline, place } from "./headline";
import { latenessWord } from "./lateness";
import { MineMark } from "./MineMark";
import { Owner } from "./Owner";
import { frameOf, Place, type RowLook, RowParts } from "./RowParts";
import { SnoozedMark } from "./Snooze";

interface Props extends RowLook {
  alert: Alert;
  /** The alert left the list's filter and only stays because it is open. */
  left: boolean;
  /** The row is below the group that it belongs to. */
  nested: boolean;
}

export function AlertRow({ alert, left, nested, ...look }: Props) {
  const { first, second } = place(alert);
  const where = (
    <>
      {alert.unread && <span className="visually-hidden">Unread. </span>}
      <Place first={first} second={second} />
      <MineMark of={alert} />
    </>
  );
  const lateness = latenessWord(alert);
  const state = left && <StateMark state={alert.state} />;
  return (
    <Link
      to="/inbox/$alertId"
      params={{ alertId: alert.id }}
      search={true}
      {...frameOf(alert.id, alert, look, [left && styles.left, nested && styles.nested, alert.unread && styles.unread])}
      aria-current={look.selected ? "true" : undefined}
    >
      <RowParts
        wide={look.wide}
        alert={alert}
        where={where}
        headline={headline(alert)}
        badge={look.wide && state}
        time={<ClockTime at={alert.exchange && !alert.count ? alert.exchange.startTime : alert.firedAt} />}
        end={
          <span className={styles.end}>
            {!look.wide && state}
            {lateness && <span className={styles.late}>{lateness}</span>}
            {alert.state === "ACKNOWLEDGED" && <Owner of={alert} />}
            <AssignedTo alert={alert} />
            <SnoozedMark alert={alert} />
            <span className={styles.mark}>{alert.delivery && <DeliveryMark delivery={alert.delivery} />}</span>
          </span>
        }
      />
    </Link>
  );
}
