import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import type { PartitionStatus, Replica, Status } from "../api/client";
import { failedCounts } from "../api/notifications";
import { replicaList, systemStatus } from "../api/status";
import { webhookHealth } from "../api/webhooks";
import { failedStatuses, lateSeconds, pending, undelivered } from "../frame/facts";
import { Page } from "../frame/Page";
import { Ago, ClockTime } from "../ui/Instant";
import { useLastError } from "../ui/lastError";
import { Figure, Figures, Section } from "../ui/Overview";
import overview from "../ui/overview.module.css";
import { Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { lag, span } from "../ui/time";
import { counted, number, sentenceCase } from "../ui/words";
import { Health } from "../webhooks/Health";
import { Charts } from "./Charts";
import { slowestOf } from "./charts";
import { RuleTable } from "./RuleTable";
import styles from "./system.module.css";
import { Unknown } from "./Unknown";

/** The state of Tocsin itself: its dependencies, its replicas, the progress of rules, and waiting messages. */
export function SystemPage() {
  const status = useQuery(systemStatus());
  const failure = useLastError(status);
  useEffect(() => {
    document.title = "System · Tocsin";
  }, []);
  return (
    <Page title="System" scrolls>
      <div className={overview.page}>
        {status.data ? (
          <Numbers status={status.data} />
        ) : failure ? (
          <Failed error={failure} onRetry={status.refetch} />
        ) : (
          <NumbersToCome />
        )}
        <Charts />
        {status.data && <Sources status={status.data} />}
        <Replicas answering={status.data?.replicaId} />
        {status.data?.partitions && <Partitions partitions={status.data.partitions} />}
        <Section title="Rules, slowest first">
          <RuleTable />
        </Section>
        <Webhooks />
      </div>
    </Page>
  );
}

const figures = ["Postgres", "ClickHouse", "Rules", "To deliver", "Completeness", "Version"] as const;

/** The places of the figures, before they are known. */
function NumbersToCome() {
  return (
    <Figures busy>
      {figures.map((name) => (
        <Figure key={name} name={name}>
          <b>…</b>
          {/* As many lines as the longest mostly has. */}
          <span>
            &nbsp;
            <br />
            &nbsp;
          </span>
        </Figure>
      ))}
    </Figures>
  );
}

/** A few figures for a quick look. */
function Numbers({ status: { dependencies, rules, outbox, completeness, version } }: { status: Status }) {
  const { data: counts } = useQuery(failedCounts());
  const lost = undelivered(counts);
  return (
    <Figures>
      {dependencies.map(({ name, reachable, error }) => (
        <Figure key={name} name={name === "clickhouse" ? "ClickHouse" : "Postgres"} bad={!reachable}>
          <b>{reachable ? "Reachable" : "Cannot be reached"}</b>
          {error && <span>{error}</span>}
        </Figure>
      ))}
      {rules && (
        <Figure name="Rules" bad={rules.failing > 0}>
          <b>{rules.total > 0 ? `${number(rules.enabled)} of ${number(rules.total)} enabled` : "None yet"}</b>
          {rules.total > 0 && (
            <span>{rules.failing > 0 ? `${number(rules.failing)} cannot be evaluated` : "All can be evaluated"}</span>
          )}
        </Figure>
      )}
      {outbox && (
        <Figure name="To deliver" bad={(outbox.oldestAgeSeconds ?? 0) > 60}>
          <b>
            <Link to="/deliveries" search={{ status: ["pending", "retrying"] }}>
              {pending(outbox)}
            </Link>
          </b>
          <span>
            {outbox.oldestAgeSeconds !== undefined
              ? `Oldest waiting for ${span(outbox.oldestAgeSeconds)}`
              : counts && !lost && "All messages delivered"}
          </span>
          {lost && (
            <span>
              <Link to="/deliveries" search={{ status: failedStatuses }}>
                {lost}
              </Link>
            </span>
          )}
        </Figure>
      )}
      <Figure name="Completeness" bad={(completeness?.missing ?? 0) > 0}>
        {completeness ? (
          <>
            <b>{number(completeness.missing)} missing</b>
            <span>
              {completeness.wholeSince ? (
                <>
                  {counted(completeness.rules, "rule")} checked, complete since{" "}
                  <ClockTime at={completeness.wholeSince} stop />
                </>
              ) : (
                <>
                  First check in progress, last step <Ago at={completeness.comparedAt} stop />
                </>
              )}
            </span>
          </>
        ) : (
          <>
            <b>Not checked yet</b>
            <span>Alerts are compared with exchanges regularly</span>
          </>
        )}
      </Figure>
      <Figure name="Version">
        <b>{version}</b>
      </Figure>
    </Figures>
  );
}

/** The source of exchanges, and how far it is evaluated. */
function Sources({ status: { dependencies, partitions = [] } }: { status: Status }) {
  const clickhouse = dependencies.find(({ name }) => name === "clickhouse");
  if (!clickhouse) return null;
  const slowest = slowestOf(partitions);
  return (
    <Section title="Sources">
      <table className={`${table.table} ${styles.rules}`}>
        <thead>
          <tr>
            <th scope="col">Source</th>
            <th scope="col">State</th>
            <th scope="col">Evaluated through</th>
            <th scope="col">Lag</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <td className={table.name}>ClickHouse</td>
            <td>{clickhouse.reachable ? "Reachable" : <span className={table.bad}>Cannot be reached</span>}</td>
            <td data-label="Evaluated through">
              {slowest?.cursorAt ? <ClockTime at={slowest.cursorAt} stop /> : <span className={table.quiet}>–</span>}
            </td>
            <td>{slowest?.lagSeconds === undefined ? "Not evaluated yet" : sentenceCase(lag(slowest.lagSeconds))}</td>
          </tr>
        </tbody>
      </table>
    </Section>
  );
}

/** The shares of the tenants, each evaluated by one replica at a time. */
function Partitions({ partitions }: { partitions: readonly PartitionStatus[] }) {
  return (
    <Section title="Partitions">
      <table className={`${table.table} ${styles.rules}`}>
        <thead>
          <tr>
            <th scope="col">Partition</th>
            <th scope="col">Lag</th>
            <th scope="col">Evaluated through</th>
            <th scope="col">Backfill from</th>
            <th scope="col">Held by</th>
          </tr>
        </thead>
        <tbody>
          {partitions.map(({ partition, lagSeconds, cursorAt, backfillFrom, owner }) => (
            <tr key={partition}>
              <td className={table.name}>
                <span className={table.word}>Partition </span>
                {partition}
              </td>
              <td>
                {lagSeconds === undefined ? (
                  <span className={table.quiet}>No rules evaluated</span>
                ) : (
                  <span className={lagSeconds > lateSeconds ? table.warn : ""}>{sentenceCase(lag(lagSeconds))}</span>
                )}
              </td>
              <td data-label="Evaluated through">
                {cursorAt ? <ClockTime at={cursorAt} stop /> : <span className={table.quiet}>–</span>}
              </td>
              <td data-label="Backfill from">
                {backfillFrom ? <ClockTime at={backfillFrom} stop /> : <span className={table.quiet}>–</span>}
              </td>
              <td data-label="Held by">
                {owner ? <span className="mono">{owner}</span> : <span className={table.warn}>No replica</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Replicas({ answering }: { answering: string | undefined }) {
  const replicas = useQuery(replicaList());
  const failure = useLastError(replicas);
  return (
    <Section title="Replicas">
      {replicas.data ? (
        <table className={`${table.table} ${styles.replicas}`}>
          <thead>
            <tr>
              <th scope="col">Replica</th>
              <th scope="col">Roles</th>
              <th scope="col">Last heartbeat</th>
              <th scope="col">Working on</th>
              <th scope="col">Started</th>
            </tr>
          </thead>
          <tbody>
            {replicas.data.map((replica) => (
              <ReplicaRow key={replica.id} replica={replica} answers={replica.id === answering} />
            ))}
          </tbody>
        </table>
      ) : failure ? (
        <Unknown what="The replicas could not be loaded." error={failure} onRetry={replicas.refetch} />
      ) : (
        <SkeletonRows headed count={1} height={66} label="Loading replicas" />
      )}
    </Section>
  );
}

function ReplicaRow({ replica, answers }: { replica: Replica; answers: boolean }) {
  const { id, host, version, roles, startedAt, lastBeatAgeSeconds, alive, partitions, claimedNotifications } = replica;
  return (
    <tr>
      <td>
        <div className={`${table.name} mono`}>{id}</div>
        <div className={table.sub}>
          {host} · {version}
          {answers && " · serves this page"}
        </div>
      </td>
      <td>{roles.join(", ")}</td>
      <td>
        {alive ? (
          `Alive: last heartbeat ${lastBeatAgeSeconds < 1 ? "less than 1 s" : span(lastBeatAgeSeconds)} ago`
        ) : (
          <span className={table.bad}>
            Dead: no heartbeat for {span(lastBeatAgeSeconds)}. Other replicas take over its work.
          </span>
        )}
      </td>
      <td>
        {counted(partitions.length, "partition")}, {counted(claimedNotifications, "message")}
      </td>
      <td>
        <span className={table.word}>Started </span>
        <Ago at={startedAt} stop />
      </td>
    </tr>
  );
}

/** Only webhooks without a flow of messages; the others are on their own page. */
function Webhooks() {
  const webhooks = useQuery(webhookHealth());
  const failure = useLastError(webhooks);
  const stopped = webhooks.data?.filter(({ health }) => health.state !== "ok") ?? [];
  return (
    <Section title="Webhooks that are not sending">
      {webhooks.data === undefined ? (
        failure ? (
          <Unknown what="The webhooks could not be loaded." error={failure} onRetry={webhooks.refetch} />
        ) : (
          <SkeletonRows headed count={1} height={48} label="Loading webhooks" />
        )
      ) : stopped.length === 0 ? (
        <p className={styles.fine}>{webhooks.data.length === 0 ? "No webhooks yet." : "All webhooks are sending."}</p>
      ) : (
        <ul className={styles.webhooks}>
          {stopped.map((webhook) => (
            <li key={webhook.id}>
              <Link to="/webhooks" hash={webhook.id} className={table.name}>
                {webhook.name}
              </Link>
              <Health webhook={webhook} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
