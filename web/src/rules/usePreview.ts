import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { ExchangeRef, FieldError, Rule, RuleDefinition, RulePreview, TemplatePreview } from "../api/client";
import { ApiError } from "../api/errors";
import { ruleDifference, rulePreview, templatePreview } from "../api/rules";
import { check } from "./check";
import { definition } from "./definition";
import { type Values, valuesOf } from "./values";

export interface Preview<T> {
  /** The newest answer, possibly for an earlier content of the form. */
  data: T | undefined;
  /** Whether it is not the answer for the present content of the form. */
  outdated: boolean;
  /** Why there is no answer; errors of fields are separate. */
  error: unknown;
  /** The API's errors for the present content of the form. */
  complaints: readonly FieldError[];
  retry: () => unknown;
}

const quietMs = 500;

/**
 * A definition without the fields that do not affect what it raises: its name, its texts and its
 * addressees. Labels and severity stay, because the routing policy depends on them.
 */
function raising(values: Values) {
  const { labels, owner, runbookUrl, note, severity, resolution, notifyOnResolve, ...definite } = definition(values);
  const said = { name: "", enabled: true, titleTemplate: "", messageTemplate: "", targets: [] };
  return {
    ...definite,
    // If there is a resolution, this belongs to it.
    ...(resolution || notifyOnResolve === undefined ? {} : { notifyOnResolve }),
    ...said,
    ...(values.useRoutingPolicy ? { severity, ...(labels ? { labels } : {}) } : { severity: "CRITICAL" }),
  };
}

/** The same without the addressees. */
const raisingAlone = (values: Values) => ({ ...raising({ ...values, useRoutingPolicy: false }), webhookIds: [] });

/** What an edit would have added and removed, if it changes what the rule raises. */
export function useRuleDifference(rule: Rule | undefined, values: Values, hours: number) {
  const stored = rule && JSON.stringify(raisingAlone(valuesOf(rule)));
  const asked = JSON.stringify(raisingAlone(values));
  const [settled] = useDebouncedValue(asked, quietMs);
  const wanted = useMemo(() => JSON.parse(settled) as RuleDefinition, [settled]);
  const changed = stored !== undefined && stored !== asked;
  const sound = check({ ...wanted, name: "-" }).length === 0;
  const { id = "", version = 0, name = "" } = rule ?? {};
  const query = useQuery({
    ...ruleDifference(id, version, { ...wanted, name }, hours),
    enabled: changed && sound && asked === settled,
    placeholderData: keepPreviousData,
  });
  return { changed, ...answer(query, sound && asked === settled, "definition.") };
}

/**
 * What the rule would have raised. It is requested when the form has not changed for a moment;
 * outdated requests are dropped.
 */
export function useRulePreview(values: Values, hours: number): Preview<RulePreview> {
  const asked = JSON.stringify(raising(values));
  const [settled] = useDebouncedValue(asked, quietMs);
  const wanted = useMemo(() => JSON.parse(settled) as RuleDefinition, [settled]);
  const sound = check({ ...wanted, name: "-" }).length === 0;
  const query = useQuery({ ...rulePreview(wanted, hours), enabled: sound, placeholderData: keepPreviousData });
  const current = asked === settled;
  return answer({ ...query, data: useLatest(query.data) }, current && sound, "definition.");
}

export interface Shown {
  /** The webhook that the message is shown for; none means Slack's layout. */
  webhookId: string | undefined;
  /** The exchange of the message; none means a made-up one. */
  exchange: ExchangeRef | undefined;
}

/** The message with these texts. */
export function useMessagePreview(values: Values, { webhookId, exchange }: Shown): Preview<TemplatePreview> {
  const { titleTemplate, messageTemplate, fireMode, severity, name } = values;
  const { labels, owner, runbookUrl, note } = definition(values);
  const wrong = check(JSON.parse(JSON.stringify({ labels, owner, runbookUrl, note }))).map(({ field }) => field);
  const sound = (field: string) => !wrong.some((other) => other.startsWith(field));
  const asked = JSON.stringify({
    ...{ titleTemplate, messageTemplate, fireMode, severity, ruleName: [...name].slice(0, 200).join("") },
    ...(fireMode === "PER_EXCHANGE" ? {} : countOf(values)),
    ...Object.fromEntries(Object.entries({ labels, owner, runbookUrl, note }).filter(([field]) => sound(field))),
    ...(webhookId ? { webhookId } : { kind: "slack" }),
    ...(exchange ? { exchange } : {}),
  });
  const [settled] = useDebouncedValue(asked, quietMs);
  const query = useQuery({ ...templatePreview(JSON.parse(settled)), placeholderData: keepPreviousData });
  return answer({ ...query, data: useLatest(query.data) }, asked === settled, "");
}

const numbers = [
  "threshold",
  "percent",
  "percentile",
  "durationMs",
  "minVolume",
  "windowSeconds",
  "shortWindowSeconds",
  "groupBy",
  "groupByAttribute",
] as const;

/** The numbers of a count, as far as they are valid. */
function countOf(values: Values) {
  const asked = definition(values);
  const wrong = new Set(check(asked).map(({ field }) => field));
  return Object.fromEntries(numbers.flatMap((field) => (wrong.has(field) ? [] : [[field, asked[field]]])));
}

/** The newest answer, even if there is none for the present request. */
function useLatest<T>(data: T | undefined): T | undefined {
  const [latest, setLatest] = useState(data);
  if (data !== undefined && data !== latest) setLatest(data);
  return data ?? latest;
}

interface Query<T> {
  data: T | undefined;
  error: Error | null;
  isPlaceholderData: boolean;
  refetch: () => unknown;
}

/** The code of a condition that is too long for a query. The rule can be saved: single exchanges are evaluated without it. */
const unreadable = "query_too_long";

function answer<T>(query: Query<T>, current: boolean, prefix: string): Preview<T> {
  const { error } = query;
  const fields =
    error instanceof ApiError
      ? error.fields.filter(({ field, code }) => field.startsWith(prefix) && code !== unreadable)
      : [];
  return {
    data: query.data,
    outdated: !current || query.isPlaceholderData || error !== null,
    error: fields.length > 0 ? null : error,
    complaints: current ? fields.map((said) => ({ ...said, field: said.field.slice(prefix.length) })) : [],
    retry: query.refetch,
  };
}
