import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { me } from "../api/access";
import type { Alert, Exchange } from "../api/client";
import { mayCall } from "../api/operations";
import { CopyButton } from "../ui/CopyButton";
import { ExactTime } from "../ui/Instant";
import { IconExternal } from "../ui/icons";
import { Field, Fields } from "../ui/MasterDetail";
import { SkeletonRows } from "../ui/states";
import styles from "./AlertDetail.module.css";
import { canBeAskedFor } from "./attributes";
import { toSearch, wide } from "./filter";
import { LongText } from "./LongText";
import { latenessSentence } from "./lateness";
import { Section } from "./Section";
import { StackTrace } from "./StackTrace";
import { UsualDuration } from "./UsualDuration";

/** How the exchange of an alert failed. */
export function ErrorOf({
  alert,
  exchange,
  title,
  complete,
}: {
  alert: Alert;
  exchange: Exchange;
  title: string;
  complete: boolean;
}) {
  const { errorType, errorMessage, errorStack } = exchange;
  if (!errorType && !errorMessage && !errorStack) return null;
  return (
    <Section title={title}>
      {errorType && <span className={styles.errorType}>{errorType}</span>}
      {errorMessage && <LongText key={alert.id} text={errorMessage} className={styles.errorMessage} />}
      {complete && (alert.errorPattern !== undefined || errorType) && (
        <Refine alert={alert} except="error" words="Exclude this error" />
      )}
      {errorStack ? (
        <div className={styles.stackFrame}>
          <StackTrace stack={errorStack} />
          <span className={styles.stackCopy}>
            <CopyButton text={errorStack} what="the stack" />
          </span>
        </div>
      ) : (
        !complete && <SkeletonRows count={8} height={28} label="Loading the stack" />
      )}
    </Section>
  );
}

/** The exchange of an alert, with its attributes. */
export function ExchangeOf({ alert, exchange, title }: { alert: Alert; exchange: Exchange; title: string }) {
  const attributes = Object.entries(exchange.attributes ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <>
      <Section title={title}>
        {alert.exchangeUrl && (
          <a className={styles.link} href={alert.exchangeUrl} target="_blank" rel="noreferrer">
            Open exchange
            <IconExternal size={14} aria-hidden="true" />
            <span className="visually-hidden"> in a new tab</span>
          </a>
        )}
        <Fields>
          <Field name="Application">{exchange.application}</Field>
          <Field name="Route">{exchange.route}</Field>
          <Field name="Environment">{exchange.environment}</Field>
          <Field name="Status">{exchange.status}</Field>
          <Field name="Duration">
            <UsualDuration alertId={alert.id} took={exchange.durationNs} />
          </Field>
          <Field name="Started">
            <ExactTime at={exchange.startTime} />
          </Field>
          {exchange.endTime && (
            <Field name="Ended">
              <ExactTime at={exchange.endTime} />
            </Field>
          )}
          {latenessSentence(alert) && <Field name="Alert raised">{latenessSentence(alert)}</Field>}
          <Field name="Execution">
            <span className="mono">{exchange.executionId}</span>
            <CopyButton text={exchange.executionId} what="the execution ID" />
            <br />
            <Link
              className={styles.same}
              to="/explain"
              search={{ executionId: exchange.executionId, startTime: exchange.startTime }}
            >
              Explain for all rules
            </Link>
          </Field>
          {exchange.correlationId && (
            <Field name="Correlation">
              <span className="mono">{exchange.correlationId}</span>
              <CopyButton text={exchange.correlationId} what="the correlation ID" />
              <br />
              <Link
                className={styles.same}
                to="/inbox"
                search={toSearch({ ...wide(alert.state), correlationId: exchange.correlationId }, "none")}
              >
                Alerts with this correlation ID
              </Link>
            </Field>
          )}
        </Fields>
      </Section>

      {attributes.length > 0 && (
        <Section title="Attributes">
          <Fields>
            {attributes.map(([name, value]) => (
              <Field key={name} name={name}>
                <span className="mono">{value}</span>
                <CopyButton text={value} what={name} />
                {canBeAskedFor(value) && <Refine alert={alert} only={name} words="Match only this value" />}
              </Field>
            ))}
          </Fields>
        </Section>
      )}
    </>
  );
}

/** Links to the alert's rule, with an unsaved condition filled in. */
function Refine({ alert, words, ...by }: { alert: Alert; words: string; except?: "error"; only?: string }) {
  const { data: who } = useQuery(me());
  if (who === undefined || !mayCall(who, "updateRule") || alert.ruleName === "" || alert.health) return null;
  return (
    <Link
      className={styles.refine}
      to="/rules/$ruleId/edit"
      params={{ ruleId: alert.ruleId }}
      search={{ alert: alert.id, ...by }}
      title="Opens the rule with this condition filled in, without saving it"
    >
      {words}
      {by.only !== undefined && <span className="visually-hidden"> of {by.only}</span>}
    </Link>
  );
}
