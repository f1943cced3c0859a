import { useQuery } from "@tanstack/react-query";
import { alertActivity } from "../api/activity";
import { systemHistory } from "../api/status";
import { lateSeconds } from "../frame/facts";
import { Chart } from "../ui/Chart";
import overview from "../ui/overview.module.css";
import { SkeletonRows } from "../ui/states";
import { span } from "../ui/time";
import { number } from "../ui/words";
import { seriesOf } from "./charts";
import { Unknown } from "./Unknown";

/** The age from which a message has waited too long. */
const waitsSeconds = 60;

/** The last 24 hours from the server's samples, and the alerts of the last hour. */
export function Charts() {
  const history = useQuery(systemHistory());
  if (!history.data) {
    if (history.error)
      return <Unknown what="The charts could not be loaded." error={history.error} onRetry={history.refetch} />;
    return <SkeletonRows count={2} height={150} label="Loading the charts" />;
  }
  const { from, stepSeconds, steps } = history.data;
  const spans = { from, stepSeconds };
  return (
    <div className={overview.charts}>
      <Chart
        {...spans}
        title="Evaluation lag of the slowest partition"
        series={[seriesOf(steps, "Lag", "--accent", ({ lagSeconds }) => lagSeconds)]}
        threshold={{ value: lateSeconds, name: "Late after" }}
        least={10}
        say={span}
      />
      <Chart
        {...spans}
        title="Messages to deliver"
        series={[seriesOf(steps, "Messages", "--accent", ({ messages }) => messages)]}
        least={10}
        say={number}
      />
      <Chart
        {...spans}
        title="Age of the oldest message to deliver"
        series={[seriesOf(steps, "Age", "--accent", ({ oldestSeconds }) => oldestSeconds)]}
        threshold={{ value: waitsSeconds, name: "Late after" }}
        least={10}
        say={span}
      />
      <Chart
        {...spans}
        title="Replicas and partitions held"
        series={[
          seriesOf(steps, "Replicas", "--resolved", ({ replicas }) => replicas),
          seriesOf(steps, "Partitions held", "--acknowledged", ({ partitionsHeld }) => partitionsHeld),
        ]}
        least={4}
        say={number}
      />
      <Raised />
    </div>
  );
}

function Raised() {
  const { data } = useQuery(alertActivity());
  if (!data) return null;
  return (
    <Chart
      title={`Alerts per minute, last hour${data.complete ? "" : " (oldest not counted)"}`}
      bars
      from={data.from}
      stepSeconds={data.bucketSeconds}
      series={[{ name: "Alerts", values: data.buckets, hue: "--firing" }]}
      least={4}
      say={number}
    />
  );
}
