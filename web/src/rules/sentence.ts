import type { RuleDefinition } from "../api/client";

type Readable = Pick<RuleDefinition, "scope" | "filter">;

/** Reads a rule back in plain words: "Whenever an exchange of orders in production fails, tell #ops once." */
export function sentence(rule: Readable, webhookNames: readonly string[]): string {
  return `Whenever ${subject(rule)} ${event(rule)}, ${consequence(webhookNames)}.`;
}

function subject({ scope }: Readable): string {
  const routes = words(scope?.routes, "or");
  const applications = words(scope?.applications, "or");
  const environments = words(scope?.environments, "or");
  return [
    "an exchange",
    routes && `on ${routes}`,
    applications && `of ${applications}`,
    environments && `in ${environments}`,
  ]
    .filter(Boolean)
    .join(" ");
}

function event({ filter }: Readable): string {
  const statuses = filter?.statuses?.length ? filter.statuses : (["FAILED"] as const);
  const verb = statuses.length > 1 ? "ends" : statuses[0] === "COMPLETED" ? "completes" : "fails";
  const conditions = [
    filter?.errorTypes?.length ? `with ${words(filter.errorTypes, "or")}` : "",
    filter?.errorMessageContains ? `with “${filter.errorMessageContains}” in its error` : "",
    filter?.errorMessageMatches ? `with an error that matches ${filter.errorMessageMatches}` : "",
    filter?.minDurationMs === undefined ? "" : `after ${filter.minDurationMs} ms or more`,
    filter?.maxDurationMs === undefined ? "" : `after ${filter.maxDurationMs} ms or less`,
    filter?.attributes?.length
      ? `with ${words(
          filter.attributes.map((a) => a.key),
          "and",
        )} as asked for`
      : "",
  ];
  return [verb, ...conditions.filter(Boolean)].join(" ");
}

function consequence(webhookNames: readonly string[]): string {
  return webhookNames.length === 0 ? "show it in the inbox and tell nobody" : `tell ${words(webhookNames, "and")} once`;
}

function words(list: readonly string[] | undefined, last: "and" | "or"): string {
  if (!list?.length) return "";
  if (list.length === 1) return list[0] ?? "";
  return `${list.slice(0, -1).join(", ")} ${last} ${list.at(-1)}`;
}
