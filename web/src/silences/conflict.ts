import type { Conflict, Side } from "../ui/ConflictDialog";
import { matchOf, matchWords, recurrenceOf, type Values, whenWords } from "./form";

/**
 * Fields of a form that belong together: a condition of theirs combined with one of mine would
 * match what neither meant.
 */
const parts = {
  name: "Name",
  reason: "Reason",
  match: "Matching alerts",
  when: "Schedule",
  digest: "Digest",
} as const;

type Part = keyof typeof parts;

/** The value of a part for comparison, and its text. */
function read(values: Values, ruleName: (id: string) => string): Record<Part, { exact: string; words: string }> {
  const { name, reason, startsAt, endsAt, digest } = values;
  const match = matchOf(values);
  const when = [instant(startsAt), instant(endsAt), recurrenceOf(values)];
  return {
    name: { exact: name, words: name },
    reason: { exact: reason, words: reason },
    match: { exact: JSON.stringify(match), words: matchWords(match, ruleName) },
    when: { exact: JSON.stringify(when), words: whenWords(values) },
    digest: { exact: String(digest), words: digest ? "Sent at the end" : "None" },
  };
}

const instant = (at: string) => (at ? Date.parse(at) : null);

/** The parts in which the reader's version and the saved one differ, if both began with `base`. */
export function differences(
  base: Values,
  { theirs, mine }: Record<Side, Values>,
  ruleName: (id: string) => string,
): Conflict<Part>[] {
  const [before, a, b] = [read(base, ruleName), read(theirs, ruleName), read(mine, ruleName)];
  return (Object.keys(parts) as Part[])
    .filter((part) => a[part].exact !== b[part].exact)
    .map((part) => ({
      field: part,
      label: parts[part],
      theirs: a[part].words || "–",
      mine: b[part].words || "–",
      changedBy:
        before[part].exact === a[part].exact ? "mine" : before[part].exact === b[part].exact ? "theirs" : "both",
    }));
}

/** Their values, except for the parts that are to be mine. */
export function merged({ theirs, mine }: Record<Side, Values>, own: readonly Part[]): Values {
  const of = (part: Part) => (own.includes(part) ? mine : theirs);
  const { recurs, startsAt, endsAt, timeZone, weekdays, from, hours } = of("when");
  return {
    // The remaining fields are conditions.
    ...of("match"),
    name: of("name").name,
    reason: of("reason").reason,
    recurs,
    startsAt,
    endsAt,
    timeZone,
    weekdays,
    from,
    hours,
    digest: of("digest").digest,
  };
}
