import { useQuery } from "@tanstack/react-query";
import { webhookActivity } from "../api/webhooks";
import { Chart } from "../ui/Chart";
import { Ago } from "../ui/Instant";
import { SkeletonRows } from "../ui/states";
import { TryAgain } from "../ui/TryAgain";
import { took } from "../ui/time";
import { number } from "../ui/words";
import styles from "./Flow.module.css";
import { rateOf } from "./flow";

/** How deliveries to a webhook went in the last 24 hours: when one last succeeded, how many do, and how long they take. */
export function Flow({ webhookId }: { webhookId: string }) {
  const activity = useQuery(webhookActivity(webhookId));
  if (!activity.data) {
    if (!activity.error) return <SkeletonRows count={2} height={56} label="Loading the activity" />;
    return (
      <p className={styles.quiet} role="alert">
        The activity could not be loaded. <TryAgain look="quiet" onRetry={activity.refetch} />
      </p>
    );
  }
  const { buckets, from, bucketSeconds, lastSuccessAt, complete } = activity.data;
  const { attempts, percent } = rateOf(activity.data);
  const span = { from, stepSeconds: bucketSeconds };
  return (
    <div className={styles.flow}>
      <dl className={styles.figures}>
        <div>
          <dt>Last success</dt>
          <dd>{lastSuccessAt ? <Ago at={lastSuccessAt} stop /> : "None in 24 h"}</dd>
        </div>
        <div>
          <dt>Success rate, 24 h</dt>
          <dd>{percent ?? "No attempts"}</dd>
        </div>
        <div>
          <dt>Attempts, 24 h</dt>
          <dd>
            {number(attempts)}
            {complete ? "" : ", of the newest messages only"}
          </dd>
        </div>
      </dl>
      <div className={styles.charts}>
        <Chart
          {...span}
          title="Attempts per hour"
          height={120}
          series={[
            { name: "Delivered", values: buckets.map(({ delivered }) => delivered), hue: "--delivered" },
            { name: "Failed", values: buckets.map(({ failed }) => failed), hue: "--failed" },
          ]}
          least={4}
          say={number}
        />
        <Chart
          {...span}
          title="Latency of delivered attempts"
          height={120}
          series={[
            { name: "Median", values: buckets.map(({ medianMs }) => medianMs ?? null), hue: "--accent" },
            { name: "95th percentile", values: buckets.map(({ p95Ms }) => p95Ms ?? null), hue: "--warning" },
          ]}
          least={10}
          say={took}
          sayAxis={(ms) => `${number(ms)} ms`}
        />
      </div>
    </div>
  );
}
