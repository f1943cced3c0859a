import { Link } from "@tanstack/react-router";
import type { CSSProperties } from "react";
import type { Alert } from "../api/client";
import { Ago, ClockTime } from "../ui/Instant";
import { IconPerson } from "../ui/icons";
import { SeverityMark, StateMark, severityMeaning } from "../ui/marks";
import styles from "./AlertRow.module.css";
import { DeliveryMark } from "./DeliveryMark";
import { headline, place } from "./headline";

export const rowHeight = { wide: 37, narrow: 60 } as const;

/** How a row stands in the list. */
export interface RowLook {
  wide: boolean;
  /** The row that is open beside the list. */
  selected: boolean;
  /** The row that keys act on. */
  cursor: boolean;
  /** The one row of the list that Tab reaches; j and k reach the others. */
  reachable: boolean;
  fresh: boolean;
  onPoint: () => void;
}

interface Props extends RowLook {
  alert: Alert;
  /** The alert left the list's filter and stays only because it is open. */
  left: boolean;
  /** The row stands below the group that it is part of. */
  nested: boolean;
}

export function AlertRow({ alert, wide, selected, cursor, reachable, fresh, left, nested, onPoint }: Props) {
  const { first, second } = place(alert);
  const { lead, text } = headline(alert);
  const className = [
    styles.row,
    wide ? styles.wide : styles.narrow,
    cursor ? styles.cursor : "",
    selected ? styles.selected : "",
    fresh ? styles.fresh : "",
    left ? styles.left : "",
    nested ? styles.nested : "",
    alert.unread ? styles.unread : "",
  ];
  const where = (
    <span className={styles.route}>
      {alert.unread && <span className="visually-hidden">Unread. </span>}
      <b>{first}</b>
      {second && ` · ${second}`}
      {alert.mine && (
        <span className={styles.mine} title="Meant for you">
          <IconPerson size={13} stroke={2} aria-hidden="true" />
          <span className="visually-hidden"> meant for you</span>
        </span>
      )}
    </span>
  );
  const words = (
    <span className={styles.text}>
      {lead && <b>{text ? `${lead}: ` : lead}</b>}
      {text}
    </span>
  );
  const delivery = alert.delivery && <DeliveryMark delivery={alert.delivery} />;
  return (
    <Link
      to="/inbox/$alertId"
      params={{ alertId: alert.id }}
      search={true}
      className={className.filter(Boolean).join(" ")}
      style={{ "--hue": severityMeaning[alert.severity].hue } as CSSProperties}
      tabIndex={reachable ? 0 : -1}
      aria-current={selected ? "true" : undefined}
      data-alert={alert.id}
      onFocus={onPoint}
    >
      {wide ? (
        <>
          <SeverityMark severity={alert.severity} short />
          {where}
          {words}
          {left ? <StateMark state={alert.state} /> : <span />}
          <span className={styles.time}>
            <ClockTime at={alert.exchange && !alert.count ? alert.exchange.startTime : alert.firedAt} />
          </span>
          <span className={styles.deliveries}>{delivery}</span>
          <span className={styles.ago}>
            <Ago at={alert.firedAt} />
          </span>
        </>
      ) : (
        <>
          <span className={styles.head}>
            <SeverityMark severity={alert.severity} short />
            {where}
          </span>
          <span className={styles.ago}>
            <Ago at={alert.firedAt} />
          </span>
          <span className={styles.foot}>
            {words}
            {left && <StateMark state={alert.state} />}
            {delivery}
          </span>
        </>
      )}
    </Link>
  );
}
