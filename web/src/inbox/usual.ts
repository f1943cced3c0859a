import { decimal, number } from "../ui/words";

/** The places of an exchange and of the usual durations on a bar, as parts of its length from 0 to 1. */
export interface Bar {
  took: number;
  median: number;
  p95: number;
  /** The text for the reader: how the exchange compares. */
  words: string;
}

/**
 * A bar that ends a little after the longest of the three. It is undefined if nothing is usual, or
 * if a duration is unknown.
 */
export function usualBar(tookNs: string, medianNs: string | undefined, p95Ns: string | undefined): Bar | undefined {
  const [took, median, p95] = [Number(tookNs), Number(medianNs), Number(p95Ns)];
  if (medianNs === undefined || p95Ns === undefined || !(took >= 0) || !(p95 > 0)) return undefined;
  const length = Math.max(took, p95) * 1.1;
  return { took: took / length, median: median / length, p95: p95 / length, words: compared(took, median, p95) };
}

function compared(took: number, median: number, p95: number): string {
  if (took > p95) {
    const times = took / Math.max(median, 1);
    return times >= 2
      ? `${times >= 10 ? number(Math.round(times)) : decimal(times, 1)} times as long as usual`
      : "longer than usual";
  }
  return took < median / 2 ? "shorter than usual" : "as usual";
}
