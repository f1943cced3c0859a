import type { RuleDefinition } from "../api/client";
import { period } from "../ui/time";
import { definition, onlyIn, type Values } from "./definition";

export type Side = "theirs" | "mine";

/** One field that two people have left in different ways. */
export interface Difference {
  field: Field;
  label: string;
  theirs: string;
  mine: string;
  /** Which side has changed it since both began; both may have. */
  changedBy: "theirs" | "mine" | "both";
}

type Field = (typeof fields)[number][0];

const seconds = (value: unknown) => (typeof value === "number" ? period(value) : "–");

/** What a person sees as one field, in the order of the page, and how its value reads. */
const fields = [
  ["name", "Name"],
  ["scope.applications", "Applications"],
  ["scope.routes", "Routes"],
  ["scope.environments", "Environments"],
  ["filter.statuses", "Exchanges that"],
  ["filter.errorTypes", "Error types"],
  ["filter.errorMessageContains", "Error message contains"],
  ["filter.errorMessageMatches", "Error message matches"],
  ["filter.minDurationMs", "Shortest duration", (value: unknown) => (value === undefined ? "–" : `${value} ms`)],
  ["filter.maxDurationMs", "Longest duration", (value: unknown) => (value === undefined ? "–" : `${value} ms`)],
  ["filter.attributes", "Attributes"],
  ["fireMode", "Alert on"],
  ["threshold", "Threshold"],
  ["windowSeconds", "Window", seconds],
  ["groupBy", "Count"],
  ["forDurationSeconds", "For", seconds],
  ["reNotifyMinutes", "Remind every", (value: unknown) => (value ? `${value} min` : "never")],
  ["notifyOnResolve", "Message on resolve"],
  ["intervalSeconds", "Evaluate every", seconds],
  ["lookBackSeconds", "Look back", seconds],
  ["severity", "Severity"],
  ["titleTemplate", "Title"],
  ["messageTemplate", "Message"],
  ["targets", "Targets"],
  ["webhookIds", "Webhooks"],
  ["enabled", "Enabled"],
] as const;

/**
 * The fields in which `mine` and `theirs` differ as the API would see them, where both began with `base`. Names reads a
 * webhook's id.
 */
export function differences(
  base: Values,
  sides: Record<Side, Values>,
  names: (webhookId: string) => string,
): Difference[] {
  const told = { base: definition(base), theirs: definition(sides.theirs), mine: definition(sides.mine) };
  return fields.flatMap(([field, label, read]) => {
    const [before, theirs, mine] = [at(told.base, field), at(told.theirs, field), at(told.mine, field)];
    if (alike(theirs, mine)) return [];
    const say = (value: unknown) => (read ? read(value) : plain(field === "webhookIds" ? named(value, names) : value));
    const changedBy = alike(before, theirs) ? "mine" : alike(before, mine) ? "theirs" : "both";
    return [{ field, label, theirs: say(theirs), mine: say(mine), changedBy }];
  });
}

/** What is taken unless a person says otherwise: what was changed, and one's own where both did. */
export function usualSide({ changedBy }: Difference): Side {
  return changedBy === "theirs" ? "theirs" : "mine";
}

/**
 * The values of `theirs`, but for the fields that shall be mine. Where the sides alert on different things, what only one
 * fire mode has comes with that mode: of the other side's fields of it nobody has said anything.
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

/** What is absent, empty, nothing or "no" is the same to the API. */
function alike(a: unknown, b: unknown): boolean {
  const told = (value: unknown) => JSON.stringify(value || (Array.isArray(value) ? value : undefined)) ?? "[]";
  return told(a) === told(b);
}

function named(ids: unknown, names: (id: string) => string): string[] {
  return (ids as string[]).map(names);
}

function plain(value: unknown): string {
  if (value === undefined || value === "" || (Array.isArray(value) && value.length === 0)) return "–";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (Array.isArray(value)) return value.map(plain).join(", ");
  if (typeof value === "object" && value !== null) return Object.values(value).join(" ");
  return String(value);
}
