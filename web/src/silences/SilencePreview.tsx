import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { SilencePreview, SilencePreviewRequest } from "../api/client";
import { reasonOf } from "../api/errors";
import { silencePreview } from "../api/silences";
import { ExactTime, When } from "../ui/Instant";
import { SeverityMark } from "../ui/marks";
import { counted } from "../ui/words";
import { matchOf, rangeOf, recurrenceOf, type Values } from "./form";
import styles from "./silences.module.css";

const quietMs = 400;

/** What the silence would have suppressed. It is requested when the form has not changed for a moment. */
export function Preview({ values }: { values: Values }) {
  const recurrence = recurrenceOf(values);
  const asked = JSON.stringify({ match: matchOf(values), ...(recurrence && { recurrence, ...rangeOf(values) }) });
  const [settled] = useDebouncedValue(asked, quietMs);
  const request = useMemo(() => JSON.parse(settled) as SilencePreviewRequest, [settled]);
  const sound =
    Object.keys(request.match).length > 0 &&
    (!request.recurrence || (request.recurrence.weekdays.length > 0 && request.recurrence.durationMinutes > 0));
  const { data, error, isPlaceholderData } = useQuery({
    ...silencePreview(request),
    enabled: sound,
    placeholderData: keepPreviousData,
  });
  return (
    <div className={asked === settled ? "" : styles.outdated}>
      <h2>What it would have suppressed in the last 24 hours</h2>
      {/* There before it says something: what comes together with its region is not said. */}
      <div aria-live="polite">
        {!sound ? (
          <p className={styles.sub}>Add a condition to see a preview.</p>
        ) : error ? (
          <p className={styles.sub}>The preview could not be loaded. {reasonOf(error)}</p>
        ) : (
          data && <Suppressed preview={data} recurs={request.recurrence !== undefined} />
        )}
      </div>
      {sound && data && !error && !isPlaceholderData && request.recurrence && data.windows.length === 0 && (
        <p className={styles.sub}>No window starts before the silence ends. Choose a later end.</p>
      )}
      {sound && data && !error && <Newest preview={data} recurs={request.recurrence !== undefined} />}
    </div>
  );
}

function Suppressed({ preview, recurs }: { preview: SilencePreview; recurs: boolean }) {
  const { messages, alerts, matchedAlerts, suppressedMessages, suppressedAlerts, complete } = preview;
  return (
    <>
      <p className={styles.big}>
        {counted(suppressedMessages, "message")} about {counted(suppressedAlerts, "alert")}
      </p>
      <p className={styles.sub}>
        There were {counted(messages, "message")} about {counted(alerts, "alert")}
        {complete ? "" : " or more, of which only the newest were checked"}.
        {recurs && ` At any hour, it would match ${counted(matchedAlerts, "alert")}.`}
      </p>
      <p className={styles.sub}>
        Only messages about new alerts are counted, not reminders, escalations or later events.
      </p>
    </>
  );
}

/** The next windows of a recurring silence, and the matching alerts, which may have fired outside of its windows. */
function Newest({ preview: { newest, windows }, recurs }: { preview: SilencePreview; recurs: boolean }) {
  return (
    <>
      {windows.length > 0 && (
        <>
          <h3>Next windows</h3>
          <ul className={styles.list}>
            {windows.map(({ from, until }) => (
              <li key={from} className={styles.sub}>
                <ExactTime at={from} /> to <ExactTime at={until} />
              </li>
            ))}
          </ul>
        </>
      )}
      {newest.length > 0 && <h3>{recurs ? "Newest matching alerts, at any hour" : "Newest matching alerts"}</h3>}
      <ul className={styles.list}>
        {newest.map((alert) => (
          <li key={alert.id}>
            <SeverityMark severity={alert.severity} short />{" "}
            <Link to="/inbox/$alertId" params={{ alertId: alert.id }}>
              {alert.title}
            </Link>
            <div className={styles.sub}>
              {alert.ruleName} · <When at={alert.firedAt} />
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
