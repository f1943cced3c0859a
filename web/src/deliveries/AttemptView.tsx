import type { Attempt } from "../api/client";
import { answerWord, verdictWords } from "../inbox/timeline";
import { When } from "../ui/Instant";
import { took } from "../ui/time";
import { counted } from "../ui/words";
import styles from "./deliveries.module.css";
import { attemptSign } from "./words";

/** One request: its result on one line and, when opened, what was sent and the answer. */
export function AttemptView({ attempt, open }: { attempt: Attempt; open: boolean }) {
  const { number, startedAt, durationMs, error, response, replica, request, responseHead } = attempt;
  const { word, explanation } = verdictWords(attempt);
  const { sign, tone } = attemptSign(attempt.verdict);
  const facts = [answerWord(attempt), durationMs === undefined ? "" : took(durationMs)].filter(Boolean);
  return (
    <details className={styles.attempt} open={open}>
      <summary>
        <span className={styles[tone]} aria-hidden="true">
          {sign}
        </span>
        <b>{word}</b>
        <span className={styles.facts}>
          attempt {number}
          {facts.map((fact) => ` · ${fact}`)}
        </span>
        <span className={styles.when}>
          <When at={startedAt} />
        </span>
      </summary>
      <div className={styles.exchange}>
        {error && <p className={styles.lastError}>{error}</p>}
        {explanation && <p className={styles.nothing}>{explanation}</p>}
        {replica && (
          <p className={styles.nothing}>
            Sent by replica <span className="mono">{replica}</span>
          </p>
        )}
        {request ? (
          <>
            <h4>Request</h4>
            <p className="mono">
              {request.method} {request.host}
            </p>
            <Headers fields={request.headers} />
            <p className={styles.nothing}>
              Body of {counted(request.bodyBytes, "byte")}, SHA-256 <span className="mono">{request.bodySha256}</span>
            </p>
          </>
        ) : (
          <p className={styles.nothing}>The request is no longer stored.</p>
        )}
        {(responseHead || response) && <h4>Response</h4>}
        {responseHead && (
          <>
            <p className="mono">{responseHead.statusLine}</p>
            <Headers fields={responseHead.headers} />
            {responseHead.truncated && <p className={styles.nothing}>Some headers were omitted.</p>}
          </>
        )}
        {response && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by key.
          <pre className={styles.body} tabIndex={0}>
            {response}
          </pre>
        )}
      </div>
    </details>
  );
}

function Headers({ fields }: { fields: readonly { name: string; value?: string; masked?: boolean }[] }) {
  if (fields.length === 0) return null;
  const counts = new Map<string, number>();
  return (
    <dl className={styles.headers}>
      {fields.map(({ name, value, masked }) => {
        const nth = (counts.get(name) ?? 0) + 1;
        counts.set(name, nth);
        return (
          <div key={`${name} ${nth}`}>
            <dt>{name}</dt>
            <dd>{masked ? <span title="May contain a secret, so it is not stored">••••••</span> : value}</dd>
          </div>
        );
      })}
    </dl>
  );
}

/** Between the attempts: a person sent the message again. */
export function RetryView({ at, by }: { at: string; by: string }) {
  return (
    <p className={styles.retry}>
      Sent again by <b>{by}</b>
      <span className={styles.when}>
        <When at={at} stop />
      </span>
    </p>
  );
}
