import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { Issue } from "../api/client";
import { type IssueKey, issueAlerts, oneIssue } from "../api/issues";
import { useMay } from "../api/operations";
import { ruleShown } from "../api/rules";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { Chart } from "../ui/Chart";
import { CopyButton } from "../ui/CopyButton";
import { Ago, When } from "../ui/Instant";
import { IconAcknowledged, IconExternal, IconPerson, IconResolved, IconUnknown } from "../ui/icons";
import { LoadMore } from "../ui/LoadMore";
import { useLastError } from "../ui/lastError";
import { SeverityMark, StateMark } from "../ui/marks";
import { Figure, Figures, Section } from "../ui/Overview";
import overview from "../ui/overview.module.css";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { alertsWord, counted, number } from "../ui/words";
import { useSelf } from "./Assignee";
import { useBulkAction } from "./bulk";
import { toFilter, toSearch } from "./filter";
import { headline } from "./headline";
import styles from "./IssuePage.module.css";
import { issueKey, issueSearch, statesOf } from "./issue";
import { Notes } from "./Notes";

/** An issue: all alerts with the same failure in one place. */
export function IssuePage() {
  const key = issueKey(useSearch({ from: "/issue" }));
  if (!key) {
    return (
      <Page title="Issue" scrolls>
        <Empty icon={IconUnknown} title="This URL does not identify an issue">
          <p>
            <Link to="/inbox">Go to the inbox</Link>
          </p>
        </Empty>
      </Page>
    );
  }
  return <OneIssue key={JSON.stringify(key)} of={key} />;
}

function OneIssue({ of }: { of: IssueKey }) {
  const issue = useQuery(oneIssue(of));
  const failure = useLastError(issue);
  useEffect(() => {
    document.title = "Issue · Tocsin";
  }, []);
  return (
    <Page title="Issue" scrolls actions={issue.data && <Actions issue={issue.data} of={of} />}>
      {issue.data ? (
        <Overview issue={issue.data} of={of} />
      ) : failure ? (
        <Failed error={failure} onRetry={issue.refetch}>
          <p>
            <Link to="/inbox">Go to the inbox</Link>
          </p>
        </Failed>
      ) : (
        <SkeletonRows count={6} height={72} label="Loading the issue" />
      )}
    </Page>
  );
}

/** Actions here apply to all alerts of the issue, and to no others. */
function Actions({ issue, of }: { issue: Issue; of: IssueKey }) {
  const may = useMay();
  const bulk = useBulkAction(() => undefined);
  const self = useSelf();
  const { application, route, signature } = of;
  const where = { application: [application], route: [route], signature: [signature], perExchange: true };
  // Alerts that fire from now on were not seen here.
  const upTo = issue.newestAt;
  const open = issue.firing + issue.acknowledged;
  return (
    <>
      {may("acknowledgeAlerts") && issue.firing > 0 && (
        <Button
          look="primary"
          busy={bulk.isPending}
          onClick={() => bulk.run("ACKNOWLEDGED", [{ filter: { ...where, state: ["FIRING"] }, upTo }])}
        >
          <IconAcknowledged size={16} aria-hidden="true" />
          Acknowledge {alertsWord(issue.firing)}
        </Button>
      )}
      {may("resolveAlerts") && open > 0 && (
        <Button
          busy={bulk.isPending}
          onClick={() => bulk.run("RESOLVED", [{ filter: { ...where, state: ["FIRING", "ACKNOWLEDGED"] }, upTo }])}
        >
          <IconResolved size={16} aria-hidden="true" />
          Resolve {alertsWord(open)}
        </Button>
      )}
      {may("assignAlerts") && self !== undefined && open > 0 && (
        <Button
          busy={bulk.isPending}
          onClick={() =>
            bulk.run({ assignee: self, reassign: false }, [
              { filter: { ...where, state: ["FIRING", "ACKNOWLEDGED"] }, upTo },
            ])
          }
        >
          <IconPerson size={16} aria-hidden="true" />
          Assign to me
        </Button>
      )}
    </>
  );
}

const hourSeconds = 3600;
const daySeconds = 24 * hourSeconds;

/** The beginning of a trend that ends now. */
function beginOf(steps: number, stepSeconds: number): string {
  return new Date(Date.now() - steps * stepSeconds * 1000).toISOString();
}

function Overview({ issue, of }: { issue: Issue; of: IssueKey }) {
  const { application, route, signature, severity, trend, days } = issue;
  const hue = "--firing";
  return (
    <div className={overview.page}>
      <header className={styles.head}>
        <div className={styles.marks}>
          <SeverityMark severity={severity} />
          <span>
            <b>{application || "no application"}</b> · {route || "no route"}
          </span>
        </div>
        <h2 className={styles.title}>
          {signature || "Alerts without an error"}
          {signature && <CopyButton text={signature} what="the error" />}
        </h2>
      </header>
      <Numbers issue={issue} />
      <div className={overview.charts}>
        <Chart
          title="Alerts per hour, last 24 hours"
          bars
          from={beginOf(trend.length, hourSeconds)}
          stepSeconds={hourSeconds}
          series={[{ name: "Alerts", values: trend, hue }]}
          least={4}
          say={number}
        />
        <Chart
          title="Alerts per day, last 14 days"
          bars
          from={beginOf(days.length, daySeconds)}
          stepSeconds={daySeconds}
          series={[{ name: "Alerts", values: days, hue }]}
          least={4}
          say={number}
        />
      </div>
      <div className={overview.columns}>
        <Section title="Notes" inset>
          <Notes of={of} readers="Everyone who can see this issue can read it." />
        </Section>
        <Places issue={issue} of={of} />
        <Regressions issue={issue} />
        <Rules issue={issue} />
      </div>
      <Alerts of={of} />
    </div>
  );
}

function Numbers({ issue }: { issue: Issue }) {
  const { lastResolution: last } = issue;
  return (
    <Figures>
      <Figure name="Alerts">
        <b>{number(issue.count)}</b>
        <span>{statesOf(issue)}</span>
      </Figure>
      <Figure name="First seen">
        <b>
          <Ago at={issue.firstAt} stop />
        </b>
      </Figure>
      <Figure name="Last seen">
        <b>
          <Ago at={issue.newestAt} stop />
        </b>
      </Figure>
      <Figure name="Last resolution">
        {last ? (
          <>
            <b>
              <Ago at={last.at} stop />
            </b>
            <Link to="/inbox/$alertId" params={{ alertId: last.alertId }} search={{ state: "resolved" }}>
              {last.by ? `by ${last.by}` : "automatically"}
            </Link>
          </>
        ) : (
          <b>Never resolved</b>
        )}
      </Figure>
      <Figure name="Regressions">
        <b>{number(issue.regressionCount)}</b>
        {issue.regressionCount > 0 ? (
          <span>Seen again after being resolved</span>
        ) : (
          last && <span>Not seen again since</span>
        )}
      </Figure>
    </Figures>
  );
}

/** How many places are shown at first, so that the alerts below are near. */
const mostPlaces = 8;

/** Where the same error happens: one cause may affect many places. */
function Places({ issue: { places, placeCount, signature }, of }: { issue: Issue; of: IssueKey }) {
  const [all, setAll] = useState(false);
  if (places.length === 0) return null;
  const shown = all ? places : places.slice(0, mostPlaces);
  return (
    <Section title="Affected applications" inset>
      <ul className={`${overview.list} ${styles.list}`}>
        {shown.map(({ application, route, count, firing, newestAt }) => {
          const here = application === of.application && route === of.route;
          const name = [application || "no application", route || "no route"].join(" · ");
          return (
            <li key={`${application}\n${route}`}>
              <span className={styles.cut}>
                {here ? (
                  <b>{name}</b>
                ) : (
                  <Link to="/issue" search={issueSearch({ application, route, signature })}>
                    {name}
                  </Link>
                )}
                {here && " (this issue)"}
              </span>
              <span className={overview.quiet}>
                {alertsWord(count)}
                {firing > 0 && `, ${number(firing)} firing`} · <Ago at={newestAt} />
              </span>
            </li>
          );
        })}
      </ul>
      {shown.length < places.length && (
        <Button look="quiet" onClick={() => setAll(true)}>
          Show {number(places.length - shown.length)} more
        </Button>
      )}
      {shown.length === places.length && placeCount > places.length && (
        <p className={overview.quiet}>and {number(placeCount - places.length)} more</p>
      )}
    </Section>
  );
}

function Regressions({ issue: { regressions, regressionCount } }: { issue: Issue }) {
  if (regressions.length === 0) return null;
  return (
    <Section title="Regressions" inset>
      <ul className={`${overview.list} ${styles.list}`}>
        {regressions.map(({ alertId, at, resolvedAt }) => (
          <li key={alertId}>
            <Link to="/inbox/$alertId" params={{ alertId }}>
              Seen again <When at={at} />
            </Link>
            <span className={overview.quiet}>
              Resolved <When at={resolvedAt} />
            </span>
          </li>
        ))}
      </ul>
      {regressionCount > regressions.length && (
        <p className={overview.quiet}>and {number(regressionCount - regressions.length)} more</p>
      )}
    </Section>
  );
}

function Rules({ issue: { rules } }: { issue: Issue }) {
  return (
    <Section title={counted(rules.length, "rule")} inset>
      <ul className={`${overview.list} ${styles.list}`}>
        {rules.map((rule, at) => (
          <li key={rule.ruleId}>
            <Link to="/rules/$ruleId" params={{ ruleId: rule.ruleId }} className={styles.cut}>
              {rule.ruleName}
            </Link>
            <span className={overview.quiet}>{alertsWord(rule.count)}</span>
            {at < mostHandled && <Handling ruleId={rule.ruleId} />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** For how many rules the page shows their information. */
const mostHandled = 5;

/** The information of a rule for people who handle its alerts. */
function Handling({ ruleId }: { ruleId: string }) {
  const { data: rule } = useQuery({ ...ruleShown(ruleId), refetchInterval: false, retry: false });
  if (!rule || !(rule.note || rule.owner || rule.runbookUrl)) return null;
  return (
    <div className={styles.handling}>
      {rule.note && <p>{rule.note}</p>}
      <p className={overview.quiet}>
        {rule.owner && <>Owner: {rule.owner}. </>}
        {rule.runbookUrl && (
          <a href={rule.runbookUrl} target="_blank" rel="noreferrer">
            Open runbook
            <IconExternal size={14} aria-hidden="true" />
            <span className="visually-hidden"> in a new tab</span>
          </a>
        )}
      </p>
    </div>
  );
}

function Alerts({ of }: { of: IssueKey }) {
  const alerts = useInfiniteQuery(issueAlerts(of));
  const failure = useLastError(alerts);
  const items = alerts.data?.pages.flatMap((page) => page.items) ?? [];
  const { application, route, signature } = of;
  const inbox = {
    ...toFilter({ per: "exchange" }),
    application: [application],
    route: [route],
    signature: [signature],
  };
  return (
    <Section title="Alerts">
      {items.length > 0 ? (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">Alert</th>
              <th scope="col">State</th>
              <th scope="col">Fired</th>
            </tr>
          </thead>
          <tbody>
            {items.map((alert) => {
              const { lead, text } = headline(alert);
              return (
                <tr key={alert.id}>
                  <td>
                    <Link
                      to="/inbox/$alertId"
                      params={{ alertId: alert.id }}
                      search={toSearch({ ...inbox, state: alert.state }, "none")}
                      className={table.name}
                    >
                      {[lead, text].filter(Boolean).join(": ") || alert.title}
                    </Link>
                    <div className={`${table.sub} mono`}>{alert.exchange?.executionId}</div>
                  </td>
                  <td>
                    <StateMark state={alert.state} />
                    {alert.state === "ACKNOWLEDGED" && alert.acknowledgedBy && (
                      <div className={`${table.quiet} ${styles.by}`}>by {alert.acknowledgedBy}</div>
                    )}
                    {alert.state === "RESOLVED" && alert.resolvedBy && (
                      <div className={`${table.quiet} ${styles.by}`}>by {alert.resolvedBy}</div>
                    )}
                  </td>
                  <td>
                    <When at={alert.firedAt} stop />
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      ) : failure ? (
        <Failed error={failure} onRetry={alerts.refetch} />
      ) : alerts.data && !alerts.hasNextPage ? (
        <p className={overview.quiet}>No alerts</p>
      ) : (
        <SkeletonRows headed count={5} height={56} label="Loading alerts" />
      )}
      {alerts.hasNextPage && (
        <div className={styles.more}>
          <LoadMore list={alerts}>Load older alerts</LoadMore>
        </div>
      )}
      <p className={styles.more}>
        <Link to="/inbox" search={toSearch(inbox, "none")} className={buttonClass("quiet")}>
          Show firing alerts in the inbox
        </Link>
      </p>
    </Section>
  );
}
