import { useQuery } from "@tanstack/react-query";
import type { Exchange, RulePreview, TemplatePreview, Webhook } from "../api/client";
import { recentExchanges } from "../api/exchanges";
import { useMinute } from "../ui/now";
import { Select } from "../ui/Select";
import { SkeletonRows } from "../ui/states";
import { shortTime } from "../ui/time";
import { Trouble } from "./PreviewPane";
import styles from "./preview.module.css";
import { blocksOf, SlackMessage } from "./SlackMessage";
import type { Preview, Shown } from "./usePreview";
import type { Values } from "./values";

interface Props {
  message: Preview<TemplatePreview>;
  /** The webhooks that would be notified. */
  webhooks: readonly Webhook[];
  exchanges: readonly Exchange[];
  shown: Shown;
  onShown: (shown: Shown) => void;
}

/** The message that a webhook would get, about an exchange that the reader chooses. */
export function MessagePane({ message, webhooks, exchanges, shown, onShown }: Props) {
  const now = useMinute();
  const { data, outdated, error, complaints, retry } = message;
  const key = ({ executionId, startTime }: Exchange) => `${startTime} ${executionId}`;
  const chosen = exchanges.find((exchange) => exchange.executionId === shown.exchange?.executionId);
  return (
    <section className={styles.part} aria-labelledby="message-title" data-section="message-preview" tabIndex={-1}>
      <header className={styles.head}>
        <h2 id="message-title">Message preview</h2>
      </header>
      <div className={styles.choose}>
        <Select
          label="About"
          options={[
            { value: "", label: "a sample exchange" },
            ...exchanges.map((exchange) => ({
              value: key(exchange),
              label: `${shortTime(exchange.startTime, now)} · ${exchange.application} · ${exchange.route}`,
            })),
          ]}
          value={chosen ? key(chosen) : ""}
          onChange={(value) => {
            const next = exchanges.find((exchange) => key(exchange) === value);
            const ref = next && { executionId: next.executionId, startTime: next.startTime };
            onShown({ ...shown, exchange: ref });
          }}
        />
        {webhooks.length > 0 && (
          <Select
            label="As sent to"
            options={webhooks.map(({ id, name }) => ({ value: id, label: name }))}
            value={shown.webhookId ?? ""}
            onChange={(webhookId) => onShown({ ...shown, webhookId })}
          />
        )}
      </div>
      {data === undefined && error == null && complaints.length === 0 && (
        <SkeletonRows count={6} height={44} label="Loading the message" />
      )}
      {error != null && <Trouble error={error} onRetry={retry} />}
      {complaints.length > 0 && <p className={styles.trouble}>{complaints.map((said) => said.message).join(" ")}</p>}
      {data && (
        <div className={outdated ? styles.outdated : ""} aria-busy={outdated}>
          {data.problem && <p className={styles.warn}>{data.problem}</p>}
          <Body body={data.request.body} />
        </div>
      )}
    </section>
  );
}

function Body({ body }: { body: string }) {
  const blocks = blocksOf(body);
  if (blocks) return <SlackMessage blocks={blocks} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what can be scrolled must be reachable by keyboard
    <section className={styles.raw} aria-label="Body of the request" tabIndex={0}>
      <pre>{pretty(body)}</pre>
    </section>
  );
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

/** The exchanges that a message can be shown for: the matching ones, or otherwise the newest of the scope. */
export function useCandidates(values: Values, preview: Preview<RulePreview>): Exchange[] {
  const matching = (preview.data?.newest ?? []).flatMap(({ exchange }) => (exchange?.executionId ? [exchange] : []));
  const none = preview.data !== undefined && !preview.outdated && matching.length === 0;
  const { data } = useQuery({ ...recentExchanges(values.scope, values.filter.statuses), enabled: none });
  return matching.length > 0 ? matching : (data ?? []);
}
