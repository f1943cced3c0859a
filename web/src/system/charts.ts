/** "at most 412": the highest of numbers, some of which may not be known. */
export function peak(values: readonly (number | undefined)[], say: (value: number) => string): string {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? "no data yet" : `at most ${say(Math.max(...known))}`;
}

/** Until when exchanges have been judged: the start time in a cursor. Undefined of one that cannot be read. */
export function judgedUntil(cursor: string | undefined): string | undefined {
  const at = cursor?.split("|")[0];
  return at && !Number.isNaN(Date.parse(at)) ? at : undefined;
}
