import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useEffect } from "react";
import type { Rule } from "../api/client";
import { type NotificationFilter, newestNotifications } from "../api/notifications";
import { useMay } from "../api/operations";
import { ruleActivity, ruleAlerts, ruleHistory, ruleShown } from "../api/rules";
import { webhookList } from "../api/webhooks";
import { useDrafted } from "../drafts/useDrafted";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { Chart } from "../ui/Chart";
import { Ago, When } from "../ui/Instant";
import { IconCopy } from "../ui/icons";
import { LoadMore } from "../ui/LoadMore";
import { useLastError } from "../ui/lastError";
import { Field, Fields } from "../ui/MasterDetail";
import { SeverityMark, StateMark, StatusMark } from "../ui/marks";
import { Section } from "../ui/Overview";
import overview from "../ui/overview.module.css";
import { Failed, SkeletonRows } from "../ui/states";
import { TryAgain } from "../ui/TryAgain";
import { period } from "../ui/time";
import { alertsWord, listed, number, sum } from "../ui/words";
import { ruleKind } from "./drafts";
import { EnabledSwitch } from "./EnabledSwitch";
import { Health } from "./Health";
import { deedOf, linesOf } from "./history";
import { Replays } from "./Replays";
import styles from "./RulePage.module.css";
import { recipientNames, sentence } from "./sentence";
import { useDuplicate } from "./useDuplicate";

/** What a rule does, and its state. Editing it has its own page. */
export function RulePage() {
  const { ruleId } = useParams({ from: "/rules/$ruleId" });
  const rule = useQuery(ruleShown(ruleId));
  const failure = useLastError(rule, ruleId);
  const name = rule.data?.name ?? "Rule";
  useEffect(() => {
    document.title = `${name} · Tocsin`;
  }, [name]);
  return (
    <Page title={name} scrolls actions={rule.data && <Actions rule={rule.data} />}>
      {rule.data ? (
        <Overview key={ruleId} rule={rule.data} />
      ) : failure ? (
        <Failed error={failure} onRetry={rule.refetch}>
          <p>
            <Link to="/rules">Go to the rules</Link>
          </p>
        </Failed>
      ) : (
        <SkeletonRows count={6} height={72} label="Loading the rule" />
      )}
    </Page>
  );
}

function Actions({ rule }: { rule: Rule }) {
  const navigate = useNavigate();
  const may = useMay();
  const drafted = useDrafted(ruleKind);
  const duplicate = useDuplicate((copy) => navigate({ to: "/rules/$ruleId", params: { ruleId: copy.id } }));
  const mayEdit = may("updateRule");
  return (
    <>
      {may("duplicateRule") && (
        <Button busy={duplicate.isPending} onClick={() => duplicate.mutate(rule)}>
          <IconCopy size={15} aria-hidden="true" />
          Duplicate
        </Button>
      )}
      <Link
        to="/rules/$ruleId/edit"
        params={{ ruleId: rule.id }}
        className={buttonClass(mayEdit ? "primary" : "plain")}
      >
        {mayEdit ? (drafted(rule.id) ? "Continue editing" : "Edit") : "Show definition"}
      </Link>
    </>
  );
}

function Overview({ rule }: { rule: Rule }) {
  const webhooks = useQuery(webhookList()).data;
  const mayWrite = useMay()("updateRule");
  const names = recipientNames(rule, (id) => webhooks?.find((webhook) => webhook.id === id)?.name ?? "a webhook");
  return (
    <div className={overview.page}>
      <header className={styles.head}>
        <p className={styles.sentence}>{sentence(rule, names)}</p>
        <div className={styles.marks}>
          <SeverityMark severity={rule.severity} />
          <EnabledSwitch rule={rule} mayWrite={mayWrite} words />
          <span className={styles.health}>
            <Health rule={rule} />
          </span>
        </div>
      </header>
      <Day rule={rule} />
      <div className={overview.columns}>
        <Alerts rule={rule} />
        <Deliveries rule={rule} />
      </div>
      <div className={overview.columns}>
        <Section title="Definition" inset>
          <Definition rule={rule} webhooks={names} />
        </Section>
        <History rule={rule} />
      </div>
      {rule.fireMode === "PER_EXCHANGE" && !rule.unreadable && <Replays rule={rule} />}
    </div>
  );
}

/** What could not be loaded, or is being loaded. */
function Missing({ what, query }: { what: string; query: { error: unknown; refetch: () => unknown } }) {
  if (!query.error) return <SkeletonRows count={3} height={44} label={`Loading ${what}`} />;
  return (
    <p className={overview.quiet} role="alert">
      The {what} could not be loaded. <TryAgain look="quiet" onRetry={query.refetch} />
    </p>
  );
}

function Day({ rule }: { rule: Rule }) {
  const day = useQuery(ruleActivity(rule.id));
  return (
    <Section title="Alerts in the last 24 hours" inset>
      {day.data ? (
        <Chart
          title={`${day.data.complete ? "" : "More than "}${alertsWord(sum(day.data.buckets))}, per 15 minutes`}
          bars
          from={day.data.from}
          stepSeconds={day.data.bucketSeconds}
          series={[{ name: "Alerts", values: day.data.buckets, hue: "--firing" }]}
          least={4}
          say={number}
        />
      ) : (
        <Missing what="chart" query={day} />
      )}
    </Section>
  );
}

function Alerts({ rule }: { rule: Rule }) {
  const alerts = useQuery(ruleAlerts(rule.id));
  return (
    <Section
      inset
      title="Open alerts"
      more={
        <Link to="/inbox" search={{ rule: [rule.id] }}>
          Show in inbox
        </Link>
      }
    >
      {alerts.data === undefined ? (
        <Missing what="alerts" query={alerts} />
      ) : alerts.data.length === 0 ? (
        <p className={overview.quiet}>No open alerts.</p>
      ) : (
        <ul className={`${overview.list} ${styles.list}`}>
          {alerts.data.map((alert) => (
            <li key={alert.id}>
              <StateMark state={alert.state} />
              <Link to="/inbox/$alertId" params={{ alertId: alert.id }} className={styles.cut}>
                {alert.title}
              </Link>
              <span className={overview.quiet}>
                <Ago at={alert.firedAt} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

const fewMessages = 8;

function Deliveries({ rule }: { rule: Rule }) {
  const filter: NotificationFilter = {
    status: [],
    webhookId: [],
    ruleId: [rule.id],
    alertId: [],
    digestId: [],
    silenceId: [],
    digestOfSilenceId: [],
    hours: 0,
    q: "",
  };
  const list = useQuery(newestNotifications(filter, fewMessages));
  const messages = list.data;
  return (
    <Section
      inset
      title="Deliveries"
      more={
        <Link to="/deliveries" search={{ rule: [rule.id] }}>
          Show all
        </Link>
      }
    >
      {messages === undefined ? (
        <Missing what="deliveries" query={list} />
      ) : messages.length === 0 ? (
        <p className={overview.quiet}>
          {rule.webhookIds.length === 0 && !rule.useRoutingPolicy ? "The rule has no webhooks." : "No messages yet."}
        </p>
      ) : (
        <ul className={`${overview.list} ${styles.list}`}>
          {messages.map(({ id, status, webhookName, alertTitle, createdAt }) => (
            <li key={id}>
              <StatusMark status={status} />
              <Link to="/deliveries/$notificationId" params={{ notificationId: id }} className={styles.cut}>
                {webhookName || "deleted webhook"}
                {alertTitle && ` · ${alertTitle}`}
              </Link>
              <span className={overview.quiet}>
                <Ago at={createdAt} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function Definition({ rule, webhooks }: { rule: Rule; webhooks: readonly string[] }) {
  const { labels = {}, owner, runbookUrl, note } = rule;
  const names = Object.keys(labels).sort();
  return (
    <Fields>
      {owner && <Field name="Owner">{owner}</Field>}
      {runbookUrl && (
        <Field name="Runbook">
          <a href={runbookUrl} target="_blank" rel="noreferrer">
            {runbookUrl}
            <span className="visually-hidden"> in a new tab</span>
          </a>
        </Field>
      )}
      {names.length > 0 && <Field name="Labels">{names.map((name) => `${name}=${labels[name]}`).join(", ")}</Field>}
      {note && <Field name="Note">{note}</Field>}
      <Field name="Webhooks">{webhooks.length > 0 ? listed(webhooks) : "none"}</Field>
      <Field name="Targets">
        {rule.targets.length > 0 ? listed(rule.targets.map(({ kind, name }) => `${kind} ${name}`)) : "none"}
      </Field>
      <Field name="Evaluated">at least every {period(rule.intervalSeconds ?? 1)}</Field>
      {rule.fireMode === "PER_EXCHANGE" && (
        <Field name="Look-back">{rule.lookBackSeconds ? period(rule.lookBackSeconds) : "off"}</Field>
      )}
      {rule.titleTemplate && (
        <Field name="Title">
          <span className="mono">{rule.titleTemplate}</span>
        </Field>
      )}
      {rule.messageTemplate && (
        <Field name="Message">
          <span className="mono">{rule.messageTemplate}</span>
        </Field>
      )}
      <Field name="Applies to exchanges since">
        <When at={rule.armedSince} stop />
      </Field>
      <Field name="Version">{rule.version}</Field>
    </Fields>
  );
}

/** Who changed what, and when. */
function History({ rule }: { rule: Rule }) {
  const history = useInfiniteQuery(ruleHistory(rule.id));
  const changes = history.data?.pages.flatMap((page) => page.items);
  return (
    <Section title="History" inset>
      {changes === undefined ? (
        <Missing what="history" query={history} />
      ) : changes.length === 0 ? (
        <p className={overview.quiet}>The audit log has no entries about this rule.</p>
      ) : (
        <ol className={`${overview.list} ${styles.history}`}>
          {changes.map((change) => (
            <li key={change.id}>
              <div>
                <b>{change.actor || "Someone"}</b> {deedOf(change)}{" "}
                <span className={overview.quiet}>
                  <When at={change.at} stop />
                </span>
              </div>
              <dl className={styles.lines}>
                {linesOf(change).map(({ label, was, is, added, removed }) => (
                  <div key={label}>
                    <dt>{label}</dt>
                    <dd>
                      {removed && (
                        <del>
                          <span className="visually-hidden">removed </span>
                          {removed}
                        </del>
                      )}
                      {added && (
                        <ins>
                          <span className="visually-hidden">added </span>
                          {added}
                        </ins>
                      )}
                      {was !== undefined && (
                        <del>
                          <span className="visually-hidden">was </span>
                          {was}
                        </del>
                      )}
                      {is !== undefined && (
                        <ins>
                          <span className="visually-hidden">is </span>
                          {is}
                        </ins>
                      )}
                    </dd>
                  </div>
                ))}
              </dl>
            </li>
          ))}
        </ol>
      )}
      {history.hasNextPage && <LoadMore list={history}>Load older changes</LoadMore>}
    </Section>
  );
}
