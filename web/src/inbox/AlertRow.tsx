import { Link } from "@tanstack/react-router";
import type { CSSProperties } from "react";
import type { Alert } from "../api/client";
import { Ago, ClockTime } from "../ui/Instant";
import { SeverityMark, StateMark, severityMeaning } from "../ui/marks";
import styles from "./AlertRow.module.css";
import { headline, place } from "./headline";

export const rowHeight = { wide: 37, narrow: 60 } as const;

interface Props {
  alert: Alert;
  wide: boolean;
  /** The row that is open beside the list. */
  selected: boolean;
  /** The row that keys act on. */
  cursor: boolean;
  /** The one row of the list that Tab reaches; j and k reach the others. */
  reachable: boolean;
  fresh: boolean;
  /** The alert left the list's filter and stays only because it is open. */
  left: boolean;
  onPoint: () => void;
}

export function AlertRow({ alert, wide, selected, cursor, reachable, fresh, left, onPoint }: Props) {
  const { first, second } = place(alert);
  const { lead, text } = headline(alert);
  const className = [
    styles.row,
    wide ? styles.wide : styles.narrow,
    cursor ? styles.cursor : "",
    selected ? styles.selected : "",
    fresh ? styles.fresh : "",
    left ? styles.left : "",
  ];
  const where = (
    <span className={styles.route}>
      <b>{first}</b>
      {second && ` · ${second}`}
    </span>
  );
  const words = (
    <span className={styles.text}>
      {lead && <b>{text ? `${lead}: ` : lead}</b>}
      {text}
    </span>
  );
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
          </span>
        </>
      )}
    </Link>
  );
}
