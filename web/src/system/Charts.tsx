import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { alertActivity } from "../api/activity";
import { mostMoments, statusPast } from "../api/status";
import { lateSeconds } from "../frame/facts";
import { Bars } from "../ui/Bars";
import { useMinute } from "../ui/now";
import { lag, minuteTime } from "../ui/time";
import { number } from "../ui/words";
import { peak } from "./charts";
import styles from "./system.module.css";

/** Where things are going: alerts raised in the last hour, and what this page has seen of messages owed and of lag. */
export function Charts() {
  const now = useMinute();
  const { data: past = [] } = useQuery(statusPast());
  const first = past[0];
  const since = first && `since ${minuteTime(first.at, now)}`;
  return (
    <div className={styles.charts}>
      <Raised />
      <Chart
        title="Messages to deliver"
        values={past.map(({ owed = 0 }) => owed)}
        said={peak(
          past.map(({ owed }) => owed),
          number,
        )}
        from={since ?? ""}
        slots={mostMoments}
        full={10}
      />
      <Chart
        title="Evaluation lag of the slowest rule"
        values={past.map(({ lagSeconds = 0 }) => lagSeconds)}
        said={peak(
          past.map(({ lagSeconds }) => lagSeconds),
          (seconds) => lag(seconds).replace(/ behind$/, ""),
        )}
        from={since ?? ""}
        slots={mostMoments}
        full={lateSeconds}
      />
    </div>
  );
}

function Raised() {
  const now = useMinute();
  const { data, isError } = useQuery(alertActivity());
  const total = data?.buckets.reduce((sum, count) => sum + count, 0) ?? 0;
  const said = data
    ? `${data.complete ? "" : "more than "}${number(total)} in an hour, ${peak(data.buckets, number)} a minute`
    : isError
      ? "Not available"
      : "…";
  return (
    <Chart
      title="Alerts per minute"
      values={data?.buckets ?? []}
      said={said}
      from={data ? `since ${minuteTime(data.from, now)}` : ""}
    />
  );
}

interface Props {
  title: string;
  values: readonly number[];
  said: ReactNode;
  /** Since when. */
  from: string;
  slots?: number;
  full?: number;
}

function Chart({ title, values, said, from, ...room }: Props) {
  return (
    <figure className={styles.chart}>
      <figcaption>{title}</figcaption>
      <Bars values={values} label={`${title}: ${said} ${from}`} {...room} />
      <p>
        <span>{said}</span>
        <span>{from}</span>
      </p>
    </figure>
  );
}
