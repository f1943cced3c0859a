import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { alertNotifications } from "../api/alerts";
import type { Alert, AlertRouting } from "../api/client";
import { reasonOf } from "../api/errors";
import { IconExternal } from "../ui/icons";
import { Field, Fields } from "../ui/MasterDetail";
import { SeverityMark, StateMark } from "../ui/marks";
import { TryAgain } from "../ui/TryAgain";
import { period } from "../ui/time";
import { listed } from "../ui/words";
import styles from "./AlertDetail.module.css";
import { AssignedField, useAssignable } from "./Assignee";
import { Count, noteReaders } from "./Count";
import { ErrorOf, ExchangeOf } from "./ExchangeOf";
import { issueSearch } from "./issue";
import { LongText } from "./LongText";
import { Notes } from "./Notes";
import { Owner } from "./Owner";
import { Section } from "./Section";
import { SnoozedMark } from "./Snooze";
import { TimelineView } from "./TimelineView";

/** What an alert says. While it is not complete, it is as in a list: without the stack. */
export function AlertBody({ alert, complete }: { alert: Alert; complete: boolean }) {
  const { count, exchange } = alert;
  return (
    <div className={styles.body}>
      <div className={styles.head}>
        <div className={styles.marks}>
          <SeverityMark severity={alert.severity} />
          <StateMark state={alert.state} />
          <span>
            Rule:{" "}
            {alert.ruleName ? (
              <Link to="/rules/$ruleId" params={{ ruleId: alert.ruleId }}>
                {alert.ruleName}
              </Link>
            ) : (
              "deleted rule"
            )}
          </span>
          {exchange && alert.signature !== undefined && (
            <Link
              to="/issue"
              search={issueSearch({
                application: exchange.application,
                route: exchange.route,
                signature: alert.signature,
              })}
            >
              Open issue
            </Link>
          )}
          <Owner of={alert} inFull />
          <SnoozedMark alert={alert} by />
        </div>
        <h2 className={styles.title}>{alert.title}</h2>
        {!repeats(alert) && <LongText key={alert.id} text={alert.message} className={styles.message} />}
        {count && <Count count={count} />}
        <About alert={alert} />
      </div>
      {count && (
        <Section title="Notes">
          <Notes key={alert.id} of={{ alertId: alert.id }} readers={noteReaders(count)} />
        </Section>
      )}
      {exchange && (
        <ErrorOf alert={alert} exchange={exchange} title={count ? "Newest error" : "Error"} complete={complete} />
      )}

      {/* The stack is still to come, and would push it away. */}
      <div hidden={!complete && exchange !== undefined}>
        <Section title="Timeline">
          {alert.routing && <Routing routing={alert.routing} />}
          <Deliveries alert={alert} />
        </Section>

        {exchange && <ExchangeOf alert={alert} exchange={exchange} title={count ? "Newest exchange" : "Exchange"} />}
      </div>
    </div>
  );
}

/** The routes that the alert took. */
function Routing({ routing }: { routing: AlertRouting }) {
  const { answer, routes, defaultWebhookIds, defaultEscalation = [], policyVersion } = routing;
  const steps = [...routes.flatMap(({ escalation = [] }) => escalation), ...defaultEscalation];
  const minutes = [...new Set(steps.map(({ afterMinutes }) => afterMinutes))].sort((a, b) => a - b);
  const way =
    answer === "ROUTED"
      ? `Routed by ${routes.map(({ name }) => `“${name}”`).join(", ")}`
      : answer === "DEFAULT"
        ? "No route matched; the alert went to the default"
        : "No route matched, and there is no default: nobody was notified";
  const reached = answer === "DEFAULT" ? defaultWebhookIds : routes.flatMap(({ webhookIds }) => webhookIds);
  const none = answer !== "NO_ROUTE" && reached.length === 0 ? ", but without webhooks: nobody was notified" : "";
  return (
    <p className={styles.message}>
      {way}
      {none} (<Link to="/routing">routing policy</Link>, version {policyVersion}).
      {minutes.length > 0 &&
        ` Escalation: ${listed(minutes.map((after) => period(after * 60)))} after an alert fires, unless someone acknowledges it.`}
    </p>
  );
}

/** Who handles the alert, and the information of its rule for them. */
function About({ alert }: { alert: Alert }) {
  const { labels = {}, owner, runbookUrl, note } = alert;
  const names = Object.keys(labels).sort();
  const assignable = useAssignable(alert);
  if (!assignable && names.length === 0 && !owner && !runbookUrl && !note && !alert.assignee) return null;
  return (
    <Section title="Handling">
      {note && <p className={styles.message}>{note}</p>}
      <Fields>
        {runbookUrl && (
          <Field name="Runbook">
            <a className={styles.link} href={runbookUrl} target="_blank" rel="noreferrer">
              Open runbook
              <IconExternal size={14} aria-hidden="true" />
              <span className="visually-hidden"> in a new tab</span>
            </a>
          </Field>
        )}
        <AssignedField alert={alert} />
        {owner && <Field name="Owner">{owner}</Field>}
        {names.map((name) => (
          <Field key={name} name={name}>
            {labels[name]}
          </Field>
        ))}
      </Fields>
    </Section>
  );
}

/** The default message is the error, which is shown in full below it. */
function repeats({ message, exchange, count }: Alert): boolean {
  if (message === "") return true;
  return !count && message.trim() === `${exchange?.errorType}: ${exchange?.errorMessage}`.trim();
}

function Deliveries({ alert }: { alert: Alert }) {
  const { data, error, refetch } = useQuery(alertNotifications(alert.id));
  return (
    <>
      <TimelineView alert={alert} notifications={data ?? []} />
      {data?.length === 0 && alert.state !== "PENDING" && (
        <p className={styles.nothing}>{alert.routing ? "No messages." : "No messages: the rule has no webhooks."}</p>
      )}
      {error && !data && (
        <p className={styles.nothing} role="alert">
          The messages could not be loaded. {reasonOf(error)} <TryAgain look="quiet" onRetry={refetch} />
        </p>
      )}
    </>
  );
}
