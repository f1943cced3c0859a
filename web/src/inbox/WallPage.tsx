import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { alertCounts, firstIssues } from "../api/alerts";
import type { AlertGroup } from "../api/client";
import { systemStatus } from "../api/status";
import { Page } from "../frame/Page";
import { useOutdated } from "../frame/useOutdated";
import { Ago } from "../ui/Instant";
import { IconResolved } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { SeverityMark } from "../ui/marks";
import { reloadByItself } from "../ui/reload";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import { useFitting } from "../ui/useFitting";
import { counted, number } from "../ui/words";
import { wide } from "./filter";
import { groupId } from "./fold";
import { headline, place } from "./headline";
import { issueSearch } from "./issue";
import { Owner } from "./Owner";
import styles from "./WallPage.module.css";

/** How many issues a wall screen shows: more cannot be read from a distance. */
const most = 12;

/** The firing alerts for a wall screen: large, without controls, as fresh as the inbox. */
export function WallPage() {
  const { data: counts } = useQuery(alertCounts());
  const issues = useInfiniteQuery(firstIssues(wide("FIRING"), most));
  const failure = useLastError(issues);
  const firing = counts?.firing;
  useReloads();
  useEffect(() => {
    document.title = firing ? `(${number(firing)}) Wall · Tocsin` : "Wall · Tocsin";
  }, [firing]);
  const groups = issues.data?.pages.flatMap((page) => page.items);
  return (
    <div className={styles.afar}>
      <Page title="Firing alerts" bare scrolls>
        <div className={styles.wall}>
          <p className={styles.counts}>
            <span className={firing ? styles.firing : styles.calm}>
              <b>{firing === undefined ? "…" : number(firing)}</b> firing
            </span>
            <span>
              <b>{counts ? number(counts.acknowledged) : "…"}</b> acknowledged
            </span>
            <Link to="/inbox" className={styles.out}>
              Inbox
            </Link>
          </p>
          {groups === undefined ? (
            failure ? (
              <Failed error={failure} onRetry={issues.refetch} />
            ) : (
              <SkeletonRows count={6} height={72} label="Loading alerts" />
            )
          ) : groups.length === 0 ? (
            <Empty icon={IconResolved} title="Nothing is firing" />
          ) : (
            <Issues groups={groups} hasMore={issues.hasNextPage} />
          )}
        </div>
      </Page>
    </div>
  );
}

/** As many issues as the screen has room for, because nobody scrolls there; a phone scrolls. */
function Issues({ groups, hasMore }: { groups: readonly AlertGroup[]; hasMore: boolean }) {
  const list = useRef<HTMLUListElement>(null);
  const fitting = useFitting(list, groups.length);
  return (
    <>
      <ul className={styles.issues} ref={list}>
        {groups.map((group, index) => (
          <IssueLine key={groupId(group)} group={group} hidden={index >= fitting} />
        ))}
      </ul>
      {(groups.length > fitting || hasMore) && (
        <p className={styles.more}>
          {hasMore ? "and more issues" : `and ${counted(groups.length - fitting, "more issue")}`}
        </p>
      )}
    </>
  );
}

const reloadMs = 60_000;

/** Nobody presses a button on a wall screen, and it cannot lose anything, so it loads a new version by itself. */
function useReloads() {
  const outdated = useOutdated(useQuery(systemStatus()).data?.version);
  useEffect(() => {
    if (!outdated) return;
    reloadByItself();
    // While replicas are updated one after another, the page may have come from an old one.
    const timer = setInterval(reloadByItself, reloadMs);
    return () => clearInterval(timer);
  }, [outdated]);
}

function IssueLine({ group, hidden }: { group: AlertGroup; hidden: boolean }) {
  const { newest, count, application, route = "", signature = "" } = group;
  const { first, second } = place(newest);
  const { lead, text } = headline(newest);
  const where = [first, second].filter(Boolean).join(" · ");
  return (
    <li className={hidden ? `${styles.issue} ${styles.beyond}` : styles.issue}>
      <span className={styles.severity}>
        <SeverityMark severity={group.severity ?? newest.severity} />
      </span>
      <span className={styles.what}>
        <b>
          {application === undefined || !newest.exchange ? (
            where
          ) : (
            <Link to="/issue" search={issueSearch({ application, route, signature })}>
              {where}
            </Link>
          )}
        </b>
        <span>{[lead, text].filter(Boolean).join(": ")}</span>
      </span>
      <span className={styles.count}>{count > 1 && `×${number(count)}`}</span>
      <span className={styles.ago}>
        <Ago at={newest.firedAt} />
        <Owner of={group} />
      </span>
    </li>
  );
}
