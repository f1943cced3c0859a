import { Link } from "@tanstack/react-router";
import type { CSSProperties } from "react";
import type { AlertFilter } from "../api/alerts";
import type { AlertGroup } from "../api/client";
import { Button } from "../ui/Button";
import { Ago } from "../ui/Instant";
import { IconChevron } from "../ui/icons";
import { SeverityMark, severityMeaning } from "../ui/marks";
import type { RowLook } from "./AlertRow";
import styles from "./AlertRow.module.css";
import { toSearch } from "./filter";
import { groupTitle, type Row, withinGroup } from "./fold";
import { headline, place } from "./headline";

const plain = new Intl.NumberFormat("en");

interface Props extends RowLook {
  id: string;
  group: AlertGroup;
  open: boolean;
  onToggle: () => void;
}

/** Many alerts in one line, of which it shows the newest. */
export function GroupRow({ id, group, open, wide, cursor, reachable, fresh, onToggle, onPoint }: Props) {
  const { newest, count, unread } = group;
  const { lead, text } = headline(newest);
  const { first, second } = place(newest);
  const byRule = group.ruleId !== undefined;
  const className = [
    styles.row,
    styles.group,
    wide ? styles.wide : styles.narrow,
    cursor ? styles.cursor : "",
    fresh ? styles.fresh : "",
    unread > 0 ? styles.unread : "",
  ];
  const where = (
    <span className={styles.route}>
      <b>{byRule ? groupTitle(group) : first}</b>
      {!byRule && second && ` · ${second}`}
    </span>
  );
  const times = (
    <span className={styles.times}>
      ×{plain.format(count)}
      <span className="visually-hidden">
        {" "}
        alerts{unread > 0 && `, ${plain.format(unread)} unread`}, {open ? "shown below" : "folded"}
      </span>
    </span>
  );
  const words = (
    <span className={styles.text}>
      {lead && <b>{text ? `${lead}: ` : lead}</b>}
      {text}
    </span>
  );
  const sign = <IconChevron className={open ? styles.chevronOpen : styles.chevron} size={14} aria-hidden="true" />;
  return (
    <button
      type="button"
      className={className.filter(Boolean).join(" ")}
      style={{ "--hue": severityMeaning[newest.severity].hue } as CSSProperties}
      tabIndex={reachable ? 0 : -1}
      aria-expanded={open}
      data-alert={id}
      onFocus={onPoint}
      onClick={onToggle}
    >
      {wide ? (
        <>
          <SeverityMark severity={newest.severity} short />
          {where}
          {words}
          {times}
          <span className={styles.time} />
          <span className={styles.deliveries}>{sign}</span>
          <span className={styles.ago}>
            <Ago at={newest.firedAt} />
          </span>
        </>
      ) : (
        <>
          <span className={styles.head}>
            <SeverityMark severity={newest.severity} short />
            {where}
            {times}
          </span>
          <span className={styles.ago}>
            <Ago at={newest.firedAt} />
          </span>
          <span className={styles.foot}>
            {words}
            {sign}
          </span>
        </>
      )}
    </button>
  );
}

interface RestProps {
  row: Extract<Row, { kind: "rest" }>;
  filter: AlertFilter;
  onRetry: () => void;
}

/** What of an opened group does not stand below it: not yet, or because it is too much. */
export function RestRow({ row, filter, onRetry }: RestProps) {
  switch (row.state) {
    case "loading":
      return (
        <p className={styles.rest} role="status">
          Loading the alerts…
        </p>
      );
    case "failed":
      return (
        <p className={styles.rest} role="alert">
          The alerts could not be read.
          <Button look="quiet" onClick={onRetry}>
            Try again
          </Button>
        </p>
      );
    case "more":
      return (
        <p className={styles.rest}>
          The newest {plain.format(row.shown)} of {plain.format(row.group.count)}.
          <Link to="/inbox" search={toSearch(withinGroup(filter, row.group))}>
            Show all of them
          </Link>
        </p>
      );
  }
}
