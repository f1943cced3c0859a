import type { CSSProperties, ReactNode } from "react";
import type { Alert } from "../api/client";
import { Ago } from "../ui/Instant";
import { SeverityMark, severityMeaning } from "../ui/marks";
import styles from "./AlertRow.module.css";
import type { headline } from "./headline";

export const rowHeight = { wide: 37, narrow: 60 } as const;

/** How a row looks in the list. */
export interface RowLook {
  wide: boolean;
  /** The open row beside the list. */
  selected: boolean;
  /** The row that keys act on. */
  cursor: boolean;
  /** The only row of the list that Tab reaches; j and k reach the others. */
  reachable: boolean;
  fresh: boolean;
  onPoint: (id: string) => void;
}

/** The common properties of every row's link or button, for one alert or for many. */
export function frameOf(
  id: string,
  { severity }: Alert,
  { wide, selected, cursor, reachable, fresh, onPoint }: RowLook,
  more: readonly (string | false | undefined)[],
) {
  const className = [
    styles.row,
    wide ? styles.wide : styles.narrow,
    cursor && styles.cursor,
    selected && styles.selected,
    fresh && styles.fresh,
    ...more,
  ];
  return {
    className: className.filter(Boolean).join(" "),
    style: { "--hue": severityMeaning[severity].hue } as CSSProperties,
    tabIndex: reachable ? 0 : -1,
    "data-alert": id,
    onFocus: () => onPoint(id),
  };
}

/** Where an alert happened. */
export function Place({ first, second }: { first: string; second?: string | undefined }) {
  return (
    <>
      <b>{first}</b>
      {second && <span className={styles.second}> · {second}</span>}
    </>
  );
}

interface Props {
  wide: boolean;
  /** The alert that the row shows: for a group, the newest. */
  alert: Alert;
  where: ReactNode;
  headline: ReturnType<typeof headline>;
  badge?: ReactNode;
  time?: ReactNode;
  end?: ReactNode;
}

/** The content of a row: on one line, or on two if the list is narrow. */
export function RowParts({ wide, alert, where, headline: { lead, text }, badge, time, end }: Props) {
  const severity = <SeverityMark severity={alert.severity} short />;
  const place = <span className={styles.route}>{where}</span>;
  const words = (
    <span className={styles.text}>
      {lead && <b>{text ? `${lead}: ` : lead}</b>}
      {text}
    </span>
  );
  const ago = (
    <span className={styles.ago}>
      <Ago at={alert.firedAt} />
    </span>
  );
  if (!wide) {
    return (
      <>
        <span className={styles.head}>
          {severity}
          {place}
          {badge}
        </span>
        {ago}
        <span className={styles.foot}>
          {words}
          {end}
        </span>
      </>
    );
  }
  return (
    <>
      {severity}
      {place}
      {words}
      {badge || <span />}
      <span className={styles.time}>{time}</span>
      <span className={styles.deliveries}>{end}</span>
      {ago}
    </>
  );
}
