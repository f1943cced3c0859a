import type { PartitionStatus, SystemStep } from "../api/client";
import type { Series } from "../ui/chart";

/** A figure of each step, null where there was no sample. */
export function seriesOf(
  steps: readonly SystemStep[],
  name: string,
  hue: string,
  read: (step: SystemStep) => number | undefined,
): Series {
  return { name, hue, values: steps.map((step) => read(step) ?? null) };
}

/** Until when exchanges have been judged: the start time in a cursor. Undefined of one that cannot be read. */
export function judgedUntil(cursor: string | undefined): string | undefined {
  const at = cursor?.split("|")[0];
  return at && !Number.isNaN(Date.parse(at)) ? at : undefined;
}

/** The partition that is the farthest behind; undefined where none has been evaluated. */
export function slowestOf(partitions: readonly PartitionStatus[]): PartitionStatus | undefined {
  const known = partitions.filter(({ lagSeconds }) => lagSeconds !== undefined);
  return known.sort((a, b) => (b.lagSeconds ?? 0) - (a.lagSeconds ?? 0))[0];
}
