import type { ExchangeRef, RulePreview } from "../api/client";
import { explain } from "../api/errors";
import { Ago } from "../ui/Instant";
import { useMinute } from "../ui/now";
import { Select } from "../ui/Select";
import { SkeletonRows } from "../ui/states";
import { TryAgain } from "../ui/TryAgain";
import { duration } from "../ui/time";
import { counted, number } from "../ui/words";
import { Histogram } from "./Histogram";
import styles from "./preview.module.css";
import { loads, shortfall, spans, summary, volumeWarning } from "./previewText";
import type { Preview } from "./usePreview";

interface Props {
  preview: Preview<RulePreview>;
  hours: number;
  onHours: (hours: number) => void;
  /** Called with the exchange of a match whose message the reader wants to see. */
  onPick: (exchange: ExchangeRef) => void;
}

/** What the rule would have raised: numbers, a chart, where, and the newest. */
export function PreviewPane({ preview, hours, onHours, onPick }: Props) {
  const { data, outdated, error, complaints, retry } = preview;
  return (
    <section className={styles.part} aria-labelledby="preview-title" data-section="preview" tabIndex={-1}>
      <header className={styles.head}>
        <h2 id="preview-title">What this rule would have raised</h2>
        <Select
          bare
          label="Time range of the preview"
          options={spans.map(({ value, label }) => ({ value, label: `last ${label}` }))}
          value={String(hours)}
          onChange={(chosen) => onHours(Number(chosen))}
        />
      </header>
      {data === undefined && error == null && complaints.length === 0 && (
        <SkeletonRows count={12} height={44} label="Loading the preview" />
      )}
      {error != null && <Trouble error={error} onRetry={retry} />}
      {complaints.length > 0 && <p className={styles.trouble}>Correct the marked fields to see the preview.</p>}
      {/* There before it says something: what comes together with its region is not said. */}
      <div aria-live="polite" className={outdated ? `${styles.live} ${styles.outdated}` : styles.live}>
        {data && <Outcome preview={data} />}
      </div>
      {data && (
        <div className={outdated ? styles.outdated : ""} aria-busy={outdated}>
          <Histogram preview={data} />
          <Shares preview={data} />
          <Newest preview={data} onPick={onPick} />
        </div>
      )}
    </section>
  );
}

export function Trouble({ error, onRetry }: { error: unknown; onRetry: () => unknown }) {
  const { what, remedy } = explain(error);
  return (
    <div className={styles.trouble} role="alert">
      <p>
        {what} {remedy}
      </p>
      <TryAgain onRetry={onRetry} />
    </div>
  );
}

function Outcome({ preview }: { preview: RulePreview }) {
  const missing = shortfall(preview, useMinute());
  const much = volumeWarning(preview);
  return (
    <div className={styles.outcome}>
      <p className={styles.summary}>{summary(preview)}</p>
      {loads(preview).map(({ id, text, exceeds }) => (
        <p key={id} className={exceeds ? styles.warn : styles.quiet}>
          {text}
        </p>
      ))}
      {much && (
        <p className={styles.warn} role="note">
          {much}
        </p>
      )}
      {missing && <p className={styles.warn}>{missing}</p>}
    </div>
  );
}

const mostShares = 6;

function Shares({ preview: { shares } }: { preview: RulePreview }) {
  if (shares.length === 0) return null;
  const most = Math.max(...shares.map(({ alerts }) => alerts));
  return (
    <>
      <h3>{shares.some(({ route }) => route) ? "By route" : "By application"}</h3>
      <ul className={styles.shares}>
        {shares.slice(0, mostShares).map(({ application, route, alerts: part }) => (
          <li key={`${application}\n${route}`}>
            <span className={styles.where}>{[application, route].filter(Boolean).join(" · ") || "Several routes"}</span>
            <span className={styles.share} style={{ width: `${(part / most) * 100}%` }} />
            <span className={styles.number}>{number(part)}</span>
          </li>
        ))}
      </ul>
      {shares.length > mostShares && <p className={styles.quiet}>and {number(shares.length - mostShares)} more</p>}
    </>
  );
}

const mostNewest = 5;

function Newest({ preview: { newest }, onPick }: { preview: RulePreview } & Pick<Props, "onPick">) {
  if (newest.length === 0) return null;
  return (
    <>
      <h3>Newest</h3>
      <ul className={styles.newest}>
        {newest.slice(0, mostNewest).map(({ id, exchange, count, firedAt }) => (
          <li key={id}>
            <div className={styles.line}>
              <span className={styles.where}>
                {count ? `${counted(count.observed, "exchange")}${count.group ? ` · ${count.group}` : ""}` : ""}
                {!count && exchange && `${exchange.application} · ${exchange.route}`}
              </span>
              <span className={styles.quiet}>
                <Ago at={exchange?.startTime ?? firedAt ?? ""} stop />
              </span>
            </div>
            {exchange && (
              <div className={`${styles.cut} ${styles.quiet}`}>
                {exchange.errorMessage || exchange.errorType || `completed in ${duration(exchange.durationNs)}`}
              </div>
            )}
            {exchange && (
              <button
                type="button"
                className={styles.pick}
                onClick={() => onPick({ executionId: exchange.executionId, startTime: exchange.startTime })}
              >
                Preview message
                <span className="visually-hidden">
                  {" "}
                  of {exchange.application} · {exchange.route}
                </span>
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
