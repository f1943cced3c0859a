import type { RuleChange } from "../api/client";
import { type Difference, differencesOf } from "../ui/difference";
import { hoursWords } from "../ui/hours";
import { listed } from "../ui/words";
import { wordOf } from "./choices";
import { readField } from "./conflict";
import { resolutionWords } from "./sentence";
import { type Calendar, labelTexts } from "./values";

/** One line of a change: a field with its values before and after, or what was added and removed. */
export interface Line {
  label: string;
  was?: string;
  is?: string;
  added?: string;
  removed?: string;
}

const verbs: Record<string, string> = {
  create: "created the rule",
  update: "changed the rule",
  delete: "deleted the rule",
};

const requests: Record<string, string> = {
  retryRule: "retried the evaluation",
  testRule: "sent a test message",
  reconcileRule: "compared alerts with exchanges",
};

interface Binding {
  webhook?: string;
}

/** The action, in words that follow the name of the person. */
export function deedOf({ action, operation = "", before, after }: RuleChange): string {
  const webhook = ((after ?? before) as Binding | undefined)?.webhook ?? "";
  if (action === "bind") return `added the webhook “${webhook}”`;
  if (action === "unbind") return `removed the webhook “${webhook}”`;
  if (action === "update" && isOnly(after, "enabled")) {
    return (after as { enabled?: boolean }).enabled ? "enabled the rule" : "disabled the rule";
  }
  if (action === "request") return requests[operation] ?? `called ${operation}`;
  return verbs[action] ?? `${action} the rule`;
}

const isOnly = (row: object | undefined, field: string) =>
  row !== undefined && Object.keys(row).length === 1 && field in row;

/** Each field that an update changed. */
export function linesOf(change: RuleChange): Line[] {
  const { action, before = {}, after = {} } = change;
  if (action !== "update" || isOnly(after, "enabled")) return [];
  return differencesOf(unpacked(before), unpacked(after)).map(lineOf);
}

interface Stored {
  about?: { labels?: Record<string, string> };
  measure?: object;
  absence?: { calendar?: Calendar };
  groupAttribute?: string;
  resolution?: Parameters<typeof resolutionWords>[0];
}

/** Values that are stored together, split into the fields of the page. */
function unpacked(row: object): object {
  const { about, measure, absence, groupAttribute, resolution, ...rest } = row as Stored;
  const { labels, ...described } = about ?? {};
  const { calendar, ...expected } = absence ?? {};
  return {
    ...rest,
    ...described,
    ...measure,
    ...expected,
    ...(about && { labels: labelTexts(labels) }),
    ...(absence && { calendar: calendar ? hoursWords(calendar) : "" }),
    ...(groupAttribute !== undefined && { groupByAttribute: groupAttribute }),
    ...(resolution && { resolution: resolutionWords(resolution) }),
  };
}

/** The text of a value; undefined if there is none. */
function worded(field: string, read: (value: unknown) => string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  // A value that is already in words is not parsed again.
  if (typeof value === "string") return wordOf(field, value);
  const text = read(value);
  return text === "–" ? undefined : text;
}

function lineOf({ path, was, is, added, removed }: Difference): Line {
  const field = path.join(".");
  const { label, read } = readField(field);
  const words = (values: readonly string[]) => listed(values.map((value) => wordOf(field, value)));
  if (!added || !removed) {
    const [before, after] = [worded(field, read, was), worded(field, read, is)];
    return { label, ...(before !== undefined && { was: before }), ...(after !== undefined && { is: after }) };
  }
  return {
    label,
    ...(added.length > 0 ? { added: words(added) } : {}),
    ...(removed.length > 0 ? { removed: words(removed) } : {}),
  };
}
