import { dayTime, hourTime } from "./time";

/** What a chart shows: values at equal steps of time, the oldest first; null where nothing is known. */
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

/** The top of the scale: enough for all values, the least that is shown, and a threshold that some value comes near to. */
export function topOf(series: readonly Series[], least: number, threshold: number | undefined): number {
  const most = Math.max(least, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  return threshold !== undefined && most > threshold / 2 ? Math.max(most, threshold * 1.1) : most;
}

/** The greatest known value of a series; undefined where none is known. */
export function peakOf({ values }: Series): number | undefined {
  const known = values.filter((value) => value !== null);
  return known.length > 0 ? Math.max(...known) : undefined;
}

/** What a chart says to those who do not see it: the peak and the last value of each series. */
export function chartWords(series: readonly Series[], say: (value: number) => string): string {
  return series
    .map((one) => {
      const peak = peakOf(one);
      const last = one.values.findLast((value) => value !== null);
      if (peak === undefined || last === undefined || last === null) return `${one.name}: no data`;
      return `${one.name}: at most ${say(peak)}, ${say(last)} at the end`;
    })
    .join("; ");
}

/** The steps whose value is between gaps. */
export function alone(values: Series["values"]): readonly number[] {
  const known = (index: number) => values[index] !== undefined && values[index] !== null;
  return values.flatMap((_, index) => (known(index) && !known(index - 1) && !known(index + 1) ? [index] : []));
}

/** The steps of a scale of whole numbers: 1, 2, 5, 10, 20, 50 and so on. */
export const wholeSteps: number[] = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((n) => n * 10 ** power),
).flat();

/** What an axis writes at an instant, where its marks are so many seconds apart: the day, or the time of the day. */
export function axisTime(seconds: number, apart: number): string {
  const date = new Date(seconds * 1000);
  return apart >= 86_400 ? dayTime(date) : hourTime(date);
}

/** The next step that the arrows lead to; the last one where none was chosen. */
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
