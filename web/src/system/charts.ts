import type { PartitionStatus, SystemStep } from "../api/client";
import type { Series } from "../ui/chart";

/** A figure for each step; null without a sample. */
export function seriesOf(
  steps: readonly SystemStep[],
  name: string,
  hue: string,
  read: (step: SystemStep) => number | undefined,
): Series {
  return { name, hue, values: steps.map((step) => read(step) ?? null) };
}

/** The start time in a cursor, up to which exchanges are evaluated. Undefined if the cursor cannot be read. */
export function evaluatedUntil(cursor: string | undefined): string | undefined {
  const at = cursor?.split("|")[0];
  return at && !Number.isNaN(Date.parse(at)) ? at : undefined;
}

/** The partition that is furthest behind; undefined if none was evaluated. */
export function slowestOf(partitions: readonly PartitionStatus[]): PartitionStatus | undefined {
  const known = partitions.filter(({ lagSeconds }) => lagSeconds !== undefined);
  return known.sort((a, b) => (b.lagSeconds ?? 0) - (a.lagSeconds ?? 0))[0];
}
