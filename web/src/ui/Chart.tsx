import { useComputedColorScheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type CSSProperties, type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import type uPlot from "uplot";
import styles from "./Chart.module.css";
import { chartWords, moved, type Series, type Span, stepsOf } from "./chart";
import { useMinute } from "./now";
import { useSetting } from "./setting";
import { dayHours, minuteTime, timeZone } from "./time";

/** The code that draws, which a page can be read without. */
const loadPlot = () => import("./plot");

interface Props extends Span {
  title: string;
  series: readonly Series[];
  bars?: boolean;
  height?: number;
  /** What the scale shows at least, so that little does not look like much. */
  least?: number;
  /** From which value on it is too much, and what that is called. */
  threshold?: { value: number; name: string };
  say: (value: number) => string;
  /** What the axis writes, where that is shorter. */
  sayAxis?: (value: number) => string;
}

/** Values over time, with axes. The pointer, or the arrow keys, tell the values of one step. */
export function Chart(props: Props) {
  const {
    title,
    series,
    from,
    stepSeconds,
    bars = false,
    height = 150,
    least = 1,
    threshold,
    say,
    sayAxis = say,
  } = props;
  const host = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot>(undefined);
  const [at, setAt] = useState<number>();
  const now = useMinute();
  const scheme = useComputedColorScheme();
  const [zone, hours] = [useSetting(timeZone), useSetting(dayHours)];
  const forced = useMediaQuery("(forced-colors: active)");
  const count = Math.max(0, ...series.map(({ values }) => values.length));
  const steps = stepsOf({ from, stepSeconds }, count);
  const timeOf = (seconds: number) => minuteTime(new Date(seconds * 1000).toISOString(), now);
  const drawing = JSON.stringify([
    series,
    from,
    stepSeconds,
    bars,
    height,
    least,
    threshold?.value,
    scheme,
    forced,
    zone,
    hours,
  ]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: all that is drawn is in `drawing`; the functions are pure.
  useEffect(() => {
    const element = host.current;
    // What draws nothing, such as a browser of tests, has no use for a chart.
    if (!element?.ownerDocument.createElement("canvas").getContext("2d")) return;
    let wanted = true;
    let observer: ResizeObserver | undefined;
    // Where the code does not come, the values can still be read by the arrow keys.
    loadPlot().then(
      ({ plot }) => {
        if (!wanted) return;
        const chart = plot({
          host: element,
          height,
          steps,
          stepSeconds,
          series,
          bars,
          least,
          threshold: threshold?.value,
          say: sayAxis,
          utc: zone === "utc",
          forced: forced === true,
          onPoint: setAt,
        });
        drawn.current = chart;
        observer = new ResizeObserver(() => chart.setSize({ width: Math.max(1, element.clientWidth), height }));
        observer.observe(element);
      },
      () => undefined,
    );
    return () => {
      wanted = false;
      observer?.disconnect();
      drawn.current?.destroy();
      drawn.current = undefined;
    };
  }, [drawing]);

  const onKeyDown = (event: KeyboardEvent) => {
    const next = moved(at, event.key, count);
    if (next === at) return;
    event.preventDefault();
    setAt(next);
    const chart = drawn.current;
    const step = next === undefined ? undefined : steps[next];
    if (chart && step !== undefined) chart.setCursor({ left: chart.valToPos(step, "x"), top: 0 }, false);
  };
  const step = at === undefined ? undefined : steps[at];
  const values = series.map((one) => {
    const value = at === undefined ? undefined : one.values[at];
    const said = value === undefined || value === null ? "no data" : say(value);
    return series.length > 1 ? `${one.name} ${said}` : said;
  });
  const id = useId();
  return (
    <figure className={styles.chart} style={{ "--chart-height": `${height}px` } as CSSProperties}>
      <figcaption className={styles.head}>
        <span id={id}>{title}</span>
        <span className={styles.said} aria-live="polite">
          {step === undefined ? "" : `${timeOf(step)} · ${values.join(", ")}`}
        </span>
      </figcaption>
      <div
        ref={host}
        className={styles.plot}
        role="img"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys tell each value.
        tabIndex={0}
        aria-label={`${title}. ${chartWords(series, say)}`}
        onKeyDown={onKeyDown}
        onBlur={() => setAt(undefined)}
      />
      {count > 0 && series.every(({ values }) => values.every((value) => value === null)) && (
        <p className={styles.nothing} aria-hidden="true">
          No data
        </p>
      )}
      {(series.length > 1 || threshold) && (
        <ul className={styles.key}>
          {series.length > 1 &&
            series.map(({ name, hue }, at) => (
              <li
                key={name}
                data-line={at > 0 ? "dotted" : "solid"}
                style={{ "--hue": `var(${hue})` } as CSSProperties}
              >
                {name}
              </li>
            ))}
          {threshold && (
            <li data-line="dashed" style={{ "--hue": "var(--danger)" } as CSSProperties}>
              {threshold.name}: {say(threshold.value)}
            </li>
          )}
        </ul>
      )}
    </figure>
  );
}
