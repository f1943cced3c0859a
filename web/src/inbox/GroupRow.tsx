import { Link } from "@tanstack/react-router";
import type { AlertFilter } from "../api/alerts";
import type { AlertGroup } from "../api/client";
import { Bars } from "../ui/Bars";
import { ClockTime } from "../ui/Instant";
import { IconChevron } from "../ui/icons";
import { TryAgain } from "../ui/TryAgain";
import { alertsWord, number, sum } from "../ui/words";
import styles from "./AlertRow.module.css";
import { DeliveryMark } from "./DeliveryMark";
import { toSearch } from "./filter";
import { groupTitle, type Row, withinGroup } from "./fold";
import { headline, place } from "./headline";
import { issueSearch } from "./issue";
import { MineMark } from "./MineMark";
import { Owner } from "./Owner";
import { frameOf, Place, type RowLook, RowParts } from "./RowParts";

interface Props extends RowLook {
  id: string;
  group: AlertGroup;
  open: boolean;
  onToggle: (id: string) => void;
}

/** Many alerts on one line, which shows the newest of them. */
export function GroupRow({ id, group, open, onToggle, ...look }: Props) {
  const { newest, count, unread } = group;
  // Issues are ordered by it, so a warning among critical alerts does not hide them.
  const worst = { ...newest, severity: group.severity ?? newest.severity };
  const { first, second } = place(newest);
  const byRule = group.ruleId !== undefined;
  const where = (
    <>
      {byRule ? <Place first={groupTitle(group)} /> : <Place first={first} second={second} />}
      <MineMark of={newest} />
    </>
  );
  const chevron = <IconChevron className={open ? styles.chevronOpen : styles.chevron} size={14} aria-hidden="true" />;
  const times = (
    <span className={styles.times}>
      ×{number(count)}
      <span className="visually-hidden">
        {" "}
        alerts{unread > 0 && `, ${number(unread)} unread`}, {open ? "shown below" : "folded"}
      </span>
      {look.wide && chevron}
    </span>
  );
  return (
    <button
      type="button"
      {...frameOf(id, worst, look, [styles.group, unread > 0 && styles.unread])}
      aria-expanded={open}
      onClick={() => onToggle(id)}
    >
      <RowParts
        wide={look.wide}
        alert={worst}
        where={where}
        headline={headline(newest)}
        badge={times}
        time={group.firstAt && <Lifetime group={group} />}
        end={
          <span className={styles.end}>
            {look.wide && group.trend && <Trend counts={group.trend} />}
            <Owner of={group} />
            <span className={styles.mark}>
              {group.delivery && <DeliveryMark delivery={group.delivery} of={coveredWords(group)} />}
            </span>
            {!look.wide && chevron}
          </span>
        }
      />
    </button>
  );
}

/** Which alerts of a group its deliveries are about, unless all. */
function coveredWords({ count, deliveryAlerts = count }: AlertGroup): string | undefined {
  return deliveryAlerts < count ? `The newest ${alertsWord(deliveryAlerts)}` : undefined;
}

/** When the first alert of a group fired. The end of the row shows when the newest did. */
function Lifetime({ group: { firstAt } }: { group: AlertGroup }) {
  return (
    <>
      since <ClockTime at={firstAt} />
    </>
  );
}

function Trend({ counts }: { counts: readonly number[] }) {
  const last = counts.at(-1) ?? 0;
  return (
    <span className={styles.trend} title="Alerts in each of the last 24 hours">
      <Bars small values={counts} label={`${number(sum(counts))} in 24 hours, ${number(last)} in the last hour`} />
    </span>
  );
}

interface RestProps {
  row: Extract<Row, { kind: "rest" }>;
  filter: AlertFilter;
  onRetry: () => unknown;
}

function IssueLink({ group: { application, route = "", signature = "" } }: { group: AlertGroup }) {
  if (application === undefined) return null;
  return (
    <Link to="/issue" search={issueSearch({ application, route, signature })}>
      Open issue
    </Link>
  );
}

/** The part of an opened group that is not shown below it: not yet, or because there are too many. */
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
          The alerts could not be loaded.
          <TryAgain look="quiet" onRetry={onRetry} />
        </p>
      );
    case "more":
      return (
        <p className={styles.rest}>
          The newest {number(row.shown)} of {number(row.group.count)}.
          <Link to="/inbox" search={toSearch(withinGroup(filter, row.group), "none")}>
            Show all
          </Link>
          <IssueLink group={row.group} />
        </p>
      );
    case "all":
      return (
        <p className={styles.rest}>
          <IssueLink group={row.group} />
        </p>
      );
  }
}
