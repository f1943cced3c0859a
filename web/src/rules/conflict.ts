import type { RuleDefinition } from "../api/client";
import type { Conflict, Side } from "../ui/ConflictDialog";
import { unlike } from "../ui/difference";
import { hoursWords } from "../ui/hours";
import { period } from "../ui/time";
import { counted, number } from "../ui/words";
import { wordOf } from "./choices";
import { definition, onlyIn } from "./definition";
import { type AttributeMatch, attribute, resolutionWords } from "./sentence";
import { type Calendar, labelTexts, type Values } from "./values";

type Resolved = NonNullable<RuleDefinition["resolution"]>;

type Field = (typeof fields)[number][0];

const seconds = (value: unknown) => (typeof value === "number" ? period(value) : "–");

const milliseconds = (value: unknown) => (typeof value === "number" ? `${number(value)} ms` : "–");

const kindWords = { user: "", team: "team ", role: "role " } as const;

/** "ada, team integration" */
const targets = (value: unknown) =>
  ((value ?? []) as RuleDefinition["targets"] & object).map(({ kind, name }) => kindWords[kind] + name).join(", ") ||
  "–";

const attributes = (value: unknown) =>
  ((value ?? []) as AttributeMatch[]).map((match) => attribute(match).replace(/^with /, "")).join(", ") || "–";

/** A field as people see it, in the order of the page, and the text of its value. */
const fields = [
  ["name", "Name"],
  ["scope.applications", "Applications"],
  ["scope.notApplications", "Except applications"],
  ["scope.routes", "Routes"],
  ["scope.notRoutes", "Except routes"],
  ["scope.environments", "Environments"],
  ["scope.notEnvironments", "Except environments"],
  ["filter.statuses", "Exchanges that"],
  ["filter.errorTypes", "Error types"],
  ["filter.notErrorTypes", "Except error types"],
  ["filter.errorMessageContains", "Error message contains"],
  ["filter.errorMessageNotContains", "Error message does not contain"],
  ["filter.errorMessageMatches", "Error message matches"],
  ["filter.errorMessageNotMatches", "Error message does not match"],
  ["filter.minDurationMs", "Minimum duration", milliseconds],
  ["filter.maxDurationMs", "Maximum duration", milliseconds],
  ["filter.attributes", "Attributes", attributes],
  ["fireMode", "Alert on"],
  ["threshold", "Threshold"],
  ["percent", "Ratio", (value: unknown) => (value === undefined ? "–" : `${value}%`)],
  ["percentile", "Percentile", (value: unknown) => (value === undefined ? "–" : `p${value}`)],
  ["durationMs", "Duration threshold", milliseconds],
  ["minVolume", "Minimum volume", (value: unknown) => (typeof value === "number" ? counted(value, "exchange") : "–")],
  ["windowSeconds", "Window", seconds],
  ["shortWindowSeconds", "Short window", seconds],
  ["groupBy", "Group by"],
  ["groupByAttribute", "Attribute to group by"],
  ["expected", "Expected"],
  ["learnDays", "Learn from", (value: unknown) => (value ? `${value} d` : "–")],
  ["calendar", "Hours", (value: unknown) => (value ? hoursWords(value as Calendar) : "–")],
  ["forDurationSeconds", "For", seconds],
  ["reNotifyMinutes", "Remind every", (value: unknown) => (value ? `${value} min` : "never")],
  ["notifyOnResolve", "Message on resolve"],
  ["resolution", "Resolve", (value: unknown) => (value ? resolutionWords(value as Resolved) || "–" : "–")],
  ["intervalSeconds", "Evaluate every", seconds],
  ["lookBackSeconds", "Look-back", seconds],
  ["severity", "Severity"],
  ["titleTemplate", "Title"],
  ["messageTemplate", "Message"],
  ["targets", "Targets", targets],
  ["webhookIds", "Webhooks"],
  ["useRoutingPolicy", "Who is notified", (value: unknown) => (value ? "The routing policy" : "These webhooks")],
  ["owner", "Owner"],
  ["runbookUrl", "Runbook"],
  ["labels", "Labels", (value: unknown) => labelTexts(value as Record<string, string>).join(", ") || "–"],
  ["note", "Note"],
  ["enabled", "Enabled"],
] as const;

/** The name of a field on the page, and the text of its value; an unknown field keeps its own name. */
export function readField(field: string): { label: string; read: (value: unknown) => string } {
  const [, label, read] = fields.find(([name]) => name === field) ?? [];
  return {
    label: label ?? field,
    read: (value) => (value !== null && read ? read(value) : plain(field, value ?? undefined)),
  };
}

/**
 * The fields in which `mine` and `theirs` differ for the API, if both began with `base`. `names`
 * gives the name of a webhook's id.
 */
export function differences(
  base: Values,
  sides: Record<Side, Values>,
  names: (webhookId: string) => string,
): Conflict<Field>[] {
  const stored = { base: definition(base), theirs: definition(sides.theirs), mine: definition(sides.mine) };
  return fields.flatMap(([field, label, read]) => {
    const [before, theirs, mine] = [at(stored.base, field), at(stored.theirs, field), at(stored.mine, field)];
    if (alike(theirs, mine)) return [];
    const say = (value: unknown, { fireMode }: RuleDefinition) => {
      // Every window rule counts in some way, which the API leaves out if it is the usual one.
      if (field === "groupBy" && fireMode !== "PER_EXCHANGE") return wordOf(field, String(value ?? ""));
      if (read) return read(value);
      return plain(field, field === "webhookIds" ? named(value, names) : value);
    };
    const changedBy = alike(before, theirs) ? "mine" : alike(before, mine) ? "theirs" : "both";
    const [a, b] = unlike(say(theirs, stored.theirs), say(mine, stored.mine));
    return [{ field, label, theirs: a, mine: b, changedBy }];
  });
}

/**
 * The values of `theirs`, except for the fields that are to be mine. If the sides have different
 * fire modes, fields of only one mode come with that mode, because the other side has no values for
 * them.
 */
export function merged(sides: Record<Side, Values>, mine: readonly Field[]): Values {
  const result = structuredClone(sides.theirs);
  const modes = [sides.theirs.fireMode, sides.mine.fireMode] as const;
  const bound: readonly Field[] = modes[0] === modes[1] ? [] : modes.flatMap((mode) => onlyIn[mode]);
  const taken = mine.filter((field) => !bound.includes(field));
  if (mine.includes("fireMode")) taken.push(...onlyIn[sides.mine.fireMode]);
  for (const field of taken) put(result, field, structuredClone(at(sides.mine, field)));
  return result;
}

function at(values: RuleDefinition | Values, field: Field): unknown {
  return field.split(".").reduce<unknown>((object, name) => (object as Record<string, unknown>)?.[name], values);
}

function put(values: Values, field: Field, value: unknown): void {
  const path = field.split(".");
  const last = path.pop() ?? "";
  const home = path.reduce<unknown>((object, name) => (object as Record<string, unknown>)[name], values);
  (home as Record<string, unknown>)[last] = value;
}

/** Absent, empty, null and false are the same to the API. */
function alike(a: unknown, b: unknown): boolean {
  const text = (value: unknown) => JSON.stringify(value || (Array.isArray(value) ? value : undefined)) ?? "[]";
  return text(a) === text(b);
}

function named(ids: unknown, names: (id: string) => string): string[] {
  return (ids as string[]).map(names);
}

function plain(field: string, value: unknown): string {
  if (typeof value === "string") return wordOf(field, value) || "–";
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return "–";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (typeof value === "number") return number(value);
  if (Array.isArray(value)) return value.map((one) => plain(field, one)).join(", ");
  return Object.values(value as object).join(" ");
}
