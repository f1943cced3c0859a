import { useMutation } from "@tanstack/react-query";
import type { TestResult, Webhook } from "../api/client";
import { reasonOf } from "../api/errors";
import { testWebhook } from "../api/webhooks";
import { verdictWords } from "../inbox/timeline";
import { FormDialog } from "../ui/FormDialog";
import { took } from "../ui/time";
import styles from "./webhooks.module.css";

/** Sends a test message, and shows the result. */
export function TestDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const test = useMutation({ mutationFn: () => testWebhook(webhook.id) });
  return (
    <FormDialog
      title={`Test “${webhook.name}”`}
      action={test.data ? "Send another" : "Send test message"}
      {...(test.data ? { close: "Close" } : {})}
      busy={test.isPending}
      problem={test.error ? reasonOf(test.error) : undefined}
      onSubmit={() => test.mutate()}
      onClose={onClose}
    >
      {test.isPending ? (
        <p role="status">Sending…</p>
      ) : test.data ? (
        <Outcome result={test.data} />
      ) : (
        <p>Sends one message about a sample exchange, marked as a test.</p>
      )}
    </FormDialog>
  );
}

function Outcome({ result }: { result: TestResult }) {
  const { verdict, statusCode, durationMs, error, response, problem } = result;
  const { word } = verdictWords({ verdict, number: 1, startedAt: "" });
  const good = verdict === "DELIVERED";
  return (
    <div className={styles.outcome} role="status">
      <p>
        <span className={good ? styles.good : styles.bad}>
          {good ? "✓" : "✗"} {word}
        </span>
        {statusCode !== undefined && ` · status ${statusCode}`} · {took(durationMs)}
      </p>
      {error && <p>{error}</p>}
      {problem && <p>The fallback message was sent: {problem}</p>}
      {response && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by key.
        <pre className={styles.excerpt} tabIndex={0}>
          {response}
        </pre>
      )}
    </div>
  );
}
