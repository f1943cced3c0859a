import type { InfiniteData } from "@tanstack/react-query";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { me } from "../api/access";
import { alertKeys, alertNotifications, oneAlert } from "../api/alerts";
import type { Alert, AlertPage, AlertRouting, Exchange, GroupBy, WindowCount } from "../api/client";
import { reasonOf } from "../api/errors";
import { mayCall } from "../api/operations";
import { Button, buttonClass, Key } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { ExactTime } from "../ui/Instant";
import { IconAcknowledged, IconExternal, IconReopened, IconResolved, IconSilence } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { DetailFrame, Field, Fields } from "../ui/MasterDetail";
import { SeverityMark, StateMark } from "../ui/marks";
import { Failed, SkeletonRows } from "../ui/states";
import { TryAgain } from "../ui/TryAgain";
import { period } from "../ui/time";
import { counted, listed, number } from "../ui/words";
import styles from "./AlertDetail.module.css";
import { AssignButton, AssignedField } from "./Assignee";
import type { Action } from "./actions";
import { canBeAskedFor } from "./attributes";
import { toSearch, wide } from "./filter";
import { countWords, share, thresholdWords } from "./headline";
import { issueSearch } from "./issue";
import { LongText } from "./LongText";
import { latenessSentence } from "./lateness";
import { Notes } from "./Notes";
import { Owner } from "./Owner";
import { ResolveFor } from "./ResolveFor";
import { reopenWord, useReopen, useReopenable } from "./reopen";
import { canBecome } from "./rows";
import { SnoozeButton, SnoozedMark } from "./Snooze";
import { StackTrace } from "./StackTrace";
import { TimelineView } from "./TimelineView";
import { UsualDuration } from "./UsualDuration";

/** The open alert. The data in a list is shown at once, the rest when it arrives. */
export function useOpenAlert(id: string | undefined) {
  const cache = useQueryClient();
  return useQuery({
    ...oneAlert(id ?? ""),
    enabled: id !== undefined,
    placeholderData: () => {
      if (id === undefined) return undefined;
      for (const [, data] of cache.getQueriesData<InfiniteData<AlertPage>>({ queryKey: alertKeys.lists })) {
        const row = data?.pages.flatMap((page) => page.items).find((alert) => alert.id === id);
        if (row) return row;
      }
      return undefined;
    },
  });
}

interface Props {
  id: string;
  alone: boolean;
  /** Whether the reader's role may act on alerts. */
  may: boolean;
  onAct: (action: Action) => void;
  /** Whether alerts are selected, which the keys then apply to. */
  selecting?: boolean;
}

export function AlertDetail({ id, alone, may, onAct, selecting = false }: Props) {
  const { data: alert, error: newest, isPlaceholderData, refetch } = useOpenAlert(id);
  const error = useLastError({ data: alert, error: newest }, id);
  return (
    <DetailFrame
      label="Alert"
      content="What happened"
      list="/inbox"
      back="Back to the inbox"
      alone={alone}
      actions={alert && <Actions alert={alert} may={may} onAct={onAct} selecting={selecting} />}
      end={alert && <CopyButton text={`${globalThis.location.origin}/inbox/${id}`} what="the link to this alert" />}
    >
      {alert ? (
        <Body alert={alert} complete={!isPlaceholderData} />
      ) : error ? (
        <Failed error={error} onRetry={refetch}>
          <Link to="/inbox" search={true}>
            Back to the inbox
          </Link>
        </Failed>
      ) : (
        <SkeletonRows count={6} height={60} label="Loading the alert" />
      )}
    </DetailFrame>
  );
}

interface ActionsProps extends Pick<Props, "may" | "onAct"> {
  alert: Alert;
  selecting: boolean;
}

function Actions({ alert, may, onAct, selecting }: ActionsProps) {
  return (
    <>
      {may && alert.state === "FIRING" && (
        <Button look="primary" onClick={() => onAct({ alert, to: "ACKNOWLEDGED" })}>
          <IconAcknowledged size={16} aria-hidden="true" />
          Acknowledge <Key>A</Key>
        </Button>
      )}
      {may && canBecome(alert, "RESOLVED") ? (
        <Button onClick={() => onAct({ alert, to: "RESOLVED" })}>
          <IconResolved size={16} aria-hidden="true" />
          Resolve <Key>R</Key>
        </Button>
      ) : (
        <StateMark state={alert.state} />
      )}
      {may && <ReopenButton alert={alert} />}
      {may && alert.count && canBecome(alert, "RESOLVED") && <ResolveFor alert={alert} onAct={onAct} />}
      {may && <AssignButton alert={alert} selecting={selecting} />}
      {may && <SnoozeButton alert={alert} />}
      <SilenceThis alert={alert} />
    </>
  );
}

/** Reopens an alert, for as long as its reader can. */
function ReopenButton({ alert }: { alert: Alert }) {
  const reopen = useReopen();
  if (!useReopenable(alert)) return null;
  return (
    <Button disabled={reopen.isPending} onClick={() => reopen.mutate(alert)}>
      <IconReopened size={16} aria-hidden="true" />
      {reopenWord(alert)} <Key>O</Key>
    </Button>
  );
}

/** Links to a new silence about this alert and similar ones, which is not saved yet. */
function SilenceThis({ alert }: { alert: Alert }) {
  const { data: who } = useQuery(me());
  if (alert.health || !mayCall(who, "createSilence")) return null;
  return (
    <Link to="/silences/new" search={{ alert: alert.id }} className={buttonClass()}>
      <IconSilence size={16} aria-hidden="true" />
      Silence
    </Link>
  );
}

function Body({ alert, complete }: { alert: Alert; complete: boolean }) {
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
              Open the issue
            </Link>
          )}
          <Owner of={alert} inFull />
          <SnoozedMark alert={alert} by />
        </div>
        <h2 className={styles.title}>{alert.title}</h2>
        {!repeats(alert) && <LongText key={alert.id} text={alert.message} className={styles.message} />}
        {count && <Count count={count} />}
      </div>
      <About alert={alert} />
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
        ? "No route matched; it went to the default"
        : "No route matched, and there is no default: nobody was notified";
  const reached = answer === "DEFAULT" ? defaultWebhookIds : routes.flatMap(({ webhookIds }) => webhookIds);
  const none = answer !== "NO_ROUTE" && reached.length === 0 ? ", without webhooks: nobody was notified" : "";
  return (
    <p className={styles.message}>
      {way}
      {none} (<Link to="/routing">routing policy</Link>, version {policyVersion}).
      {minutes.length > 0 &&
        ` It escalates ${listed(minutes.map(String))} min after it fired, unless somebody acknowledges it.`}
    </p>
  );
}

/** Who handles the alert, and the information of its rule for them. */
function About({ alert }: { alert: Alert }) {
  const { labels = {}, owner, runbookUrl, note } = alert;
  const names = Object.keys(labels).sort();
  if (names.length === 0 && !owner && !runbookUrl && !note && !alert.assignee) return null;
  return (
    <Section title="Handling">
      {note && <p className={styles.message}>{note}</p>}
      <Fields>
        {runbookUrl && (
          <Field name="Runbook">
            <a className={styles.link} href={runbookUrl} target="_blank" rel="noreferrer">
              Open the runbook
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

/** Notes on a window alert are on its rule and group. The alert of one exchange has those of its issue, which it links to. */
function noteReaders({ groupBy }: WindowCount): string {
  return `Shown whenever this rule fires${groupBy ? " for this group" : ""}, to everyone who can see the alert.`;
}

const groupNames: Record<Exclude<GroupBy, "ATTRIBUTE">, string> = {
  ROUTE: "Route",
  APPLICATION: "Application",
  ENVIRONMENT: "Environment",
  ERROR_TYPE: "Error type",
};

function groupName({ groupBy, groupByAttribute }: WindowCount): string {
  return groupBy && groupBy !== "ATTRIBUTE" ? groupNames[groupBy] : (groupByAttribute ?? "");
}

/** "30 of 120 exchanges match", "9 of 120 exchanges took at least as long". */
function volumeWords({ fireMode, observed, volume }: WindowCount): string {
  return `${number(observed)} of ${counted(volume ?? 0, "exchange")} ${fireMode === "RATIO_IN_WINDOW" ? "match" : "took at least as long"}`;
}

function Count({ count }: { count: WindowCount }) {
  return (
    <Section title={`${count.value === undefined ? "Count" : "Value"} at the last change`}>
      <p className={styles.count}>{countWords(count)}</p>
      <Fields>
        {count.groupBy && (
          <Field name={groupName(count)}>
            {count.group || (count.groupBy === "ATTRIBUTE" ? "without a value" : "without a name")}
          </Field>
        )}
        <Field name="Threshold">{thresholdWords(count)}</Field>
        {count.volume !== undefined && <Field name="Measured">{volumeWords(count)}</Field>}
        <Field name="Window">{period(count.windowSeconds)}</Field>
        {count.shortWindowSeconds !== undefined && (
          <Field name="Short window">
            {share(count.shortValue ?? 0, count.threshold)} within {period(count.shortWindowSeconds)}
          </Field>
        )}
      </Fields>
    </Section>
  );
}

function ErrorOf({
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
        <Refine alert={alert} except="error" words="Everything but this error" />
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

function ExchangeOf({ alert, exchange, title }: { alert: Alert; exchange: Exchange; title: string }) {
  const attributes = Object.entries(exchange.attributes ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <>
      <Section title={title}>
        {alert.exchangeUrl && (
          <a className={styles.link} href={alert.exchangeUrl} target="_blank" rel="noreferrer">
            Open the exchange
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
            <CopyButton text={exchange.executionId} what="the execution id" />
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
              <CopyButton text={exchange.correlationId} what="the correlation id" />
              <br />
              <Link
                className={styles.same}
                to="/inbox"
                search={toSearch({ ...wide(alert.state), correlationId: exchange.correlationId }, "none")}
              >
                Alerts with this correlation id
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
                {canBeAskedFor(value) && <Refine alert={alert} only={name} words="Only this value" />}
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
      title="Opens the rule with this condition filled in; nothing is saved yet"
    >
      {words}
      {by.only !== undefined && <span className="visually-hidden"> of {by.only}</span>}
    </Link>
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

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles.section}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}
