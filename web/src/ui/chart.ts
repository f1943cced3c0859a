import { dayTime, hourTime } from "./time";

/** The content of a chart: values at equal steps of time, oldest first; null if unknown. */
export interface Series {
  name: string;
  values: readonly (number | null)[];
  /** The token of its colour: "--accent". */
  hue: string;
}

export interface Span {
  /** Where the first step begins. */
  from: string;
  stepSeconds: number;
}

/** The beginnings of the steps, in seconds since 1970. */
export function stepsOf({ from, stepSeconds }: Span, count: number): number[] {
  const first = Math.round(Date.parse(from) / 1000);
  return Array.from({ length: count }, (_, index) => first + index * stepSeconds);
}

/** The maximum of the scale: enough for all values, the least maximum, and a threshold that a value comes near. */
export function topOf(series: readonly Series[], least: number, threshold: number | undefined): number {
  const most = Math.max(least, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  return threshold !== undefined && most > threshold / 2 ? Math.max(most, threshold * 1.1) : most;
}

/** The largest known value of a series; undefined if none is known. */
export function peakOf({ values }: Series): number | undefined {
  const known = values.filter((value) => value !== null);
  return known.length > 0 ? Math.max(...known) : undefined;
}

/** The text of a chart for people who do not see it: the peak and the last value of each series. */
export function chartWords(series: readonly Series[], say: (value: number) => string): string {
  return series
    .map((one) => {
      const peak = peakOf(one);
      const last = one.values.findLast((value) => value !== null);
      if (peak === undefined || last === undefined || last === null) return `${one.name}: no data`;
      return `${one.name}: peak ${say(peak)}, latest ${say(last)}`;
    })
    .join("; ");
}

/** The steps with values between gaps. */
export function alone(values: Series["values"]): readonly number[] {
  const known = (index: number) => values[index] !== undefined && values[index] !== null;
  return values.flatMap((_, index) => (known(index) && !known(index - 1) && !known(index + 1) ? [index] : []));
}

/** The steps of a scale of whole numbers: 1, 2, 5, 10, 20, 50 and so on. */
export const wholeSteps: number[] = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((n) => n * 10 ** power),
).flat();

/** The label of an axis at an instant, for marks a number of seconds apart: the day, or the time of day. */
export function axisTime(seconds: number, apart: number): string {
  const date = new Date(seconds * 1000);
  return apart >= 86_400 ? dayTime(date) : hourTime(date);
}

/** The step that an arrow key leads to; the last one if none was chosen. */
export function moved(at: number | undefined, key: string, count: number): number | undefined {
  const last = count - 1;
  if (last < 0) return undefined;
  switch (key) {
    case "ArrowLeft":
      return Math.max(0, (at ?? count) - 1);
    case "ArrowRight":
      return Math.min(last, at === undefined ? last : at + 1);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return at;
  }
}
