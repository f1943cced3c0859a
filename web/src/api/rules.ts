import { infiniteQueryOptions, queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import {
  body,
  client,
  type ExchangeRef,
  type Reconciliation,
  type Rule,
  type RuleDefinition,
  type RuleReplay,
  type RuleReplayMessages,
  type RuleReplayPreview,
  type RuleReplayRange,
  type Status,
  type TemplatePreviewRequest,
  type TestResult,
} from "./client";
import { allPages } from "./pages";
import { systemStatus } from "./status";

export const ruleKeys = { all: ["rules"] as const, ones: ["rule"] as const, names: ["rules", "names"] as const };

const healthPollMs = 60_000;
const troublePollMs = 15_000;
/** A definition has about 1 kB: lists that are this much longer are requested so much less often. */
const manyRules = 400;
const openPollMs = 15_000;
const runningPollMs = 2_000;
const historyPage = 20;
const fewAlerts = 8;

/** Every rule by name, for choices and for what refers to rules. Unlike the list of rules, it is small. */
export function ruleNames() {
  return queryOptions({
    queryKey: ruleKeys.names,
    queryFn: async ({ signal }) => (await body(client.GET("/rules/names", { signal }))).items,
  });
}

/** Every rule by name, with its whole definition and its health as of then. */
export function ruleList() {
  return queryOptions({
    queryKey: ruleKeys.all,
    queryFn: ({ signal }) =>
      allPages<Rule>((cursor) => body(client.GET("/rules", { signal, params: { query: { limit: 200, ...cursor } } }))),
  });
}

/**
 * Every rule with its present health. The list contains whole definitions. So it is requested again
 * when the status, which is polled anyway, says that something about rules has changed, and rarely
 * otherwise.
 */
export function useRuleHealth() {
  // Of the status, which changes with every answer, only what says something about rules.
  const { data: news } = useQuery({ ...systemStatus(), select: newsOfRules });
  const { total, enabled, failing = 0, backfilling = 0 } = news ?? {};
  const backfills = useLasting(backfilling > 0, troublePollMs);
  const rules = useQuery({
    ...ruleList(),
    refetchInterval: ({ state: { data = [] } }) => {
      const isTrouble = failing > 0 || backfills || data.some(({ health }) => health?.backfillFrom);
      return (isTrouble ? troublePollMs : healthPollMs) * Math.max(1, Math.ceil(data.length / manyRules));
    },
  });
  const { refetch } = rules;
  const sign = total === undefined ? undefined : [total, enabled, failing].join(" ");
  const seen = useRef<string>(undefined);
  useEffect(() => {
    if (sign !== undefined && seen.current !== undefined && seen.current !== sign) void refetch();
    seen.current = sign ?? seen.current;
  }, [sign, refetch]);
  return rules;
}

function newsOfRules({ rules }: Status) {
  return (
    rules && { total: rules.total, enabled: rules.enabled, failing: rules.failing, backfilling: rules.backfilling }
  );
}

/** Whether something has been so for a while. Most backfills end within seconds, and nobody would see them in the list. */
function useLasting(is: boolean, ms: number): boolean {
  const [lasts, setLasts] = useState(false);
  useEffect(() => {
    if (!is) return;
    const timer = setTimeout(() => setLasts(true), ms);
    return () => {
      clearTimeout(timer);
      setLasts(false);
    };
  }, [is, ms]);
  return lasts;
}

/** How many alerts of each rule are open; a rule without one is absent. */
export function openAlerts() {
  return queryOptions({
    queryKey: ["alerts", "openByRule"] as const,
    queryFn: async ({ signal }) => {
      const query = { by: "rule" as const, state: ["FIRING" as const, "ACKNOWLEDGED" as const], limit: 200 };
      const groups = await allPages((cursor) =>
        body(client.GET("/alerts/groups", { signal, params: { query: { ...query, ...cursor } } })),
      );
      return new Map(groups.map((group) => [group.ruleId, group]));
    },
    refetchInterval: openPollMs,
    retry: false,
  });
}

/** One stored rule. It is not refreshed while somebody edits it. */
export function ruleOne(id: string) {
  return queryOptions({
    queryKey: [...ruleKeys.ones, id] as const,
    queryFn: ({ signal }) => readRule(id, signal),
    // Each time it is opened, it begins with the stored state.
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
}

/** One rule with its present health, as its page shows it. */
export function ruleShown(id: string) {
  return queryOptions({
    queryKey: [...ruleKeys.all, id] as const,
    queryFn: ({ signal }) => readRule(id, signal),
    refetchInterval: troublePollMs,
  });
}

/** The alerts that a rule raised in each quarter of an hour of the last day. */
export function ruleActivity(id: string) {
  return queryOptions({
    queryKey: ["ruleActivity", id] as const,
    queryFn: ({ signal }) => body(client.GET("/rules/{id}/activity", { signal, params: { path: { id } } })),
    refetchInterval: healthPollMs,
  });
}

/** What was changed about a rule, newest first. */
export function ruleHistory(id: string) {
  return infiniteQueryOptions({
    queryKey: [...ruleKeys.all, id, "history"] as const,
    queryFn: ({ signal, pageParam }) => {
      const query = { limit: historyPage, ...(pageParam ? { cursor: pageParam } : {}) };
      return body(client.GET("/rules/{id}/history", { signal, params: { path: { id }, query } }));
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor || undefined,
  });
}

/** The newest open alerts of a rule. */
export function ruleAlerts(id: string) {
  return queryOptions({
    queryKey: ["alerts", "ofRule", id] as const,
    queryFn: async ({ signal }) => {
      const query = { ruleId: [id], state: ["FIRING" as const, "ACKNOWLEDGED" as const], limit: fewAlerts };
      return (await body(client.GET("/alerts", { signal, params: { query } }))).items;
    },
    refetchInterval: openPollMs,
  });
}

export function readRule(id: string, signal?: AbortSignal): Promise<Rule> {
  return body(client.GET("/rules/{id}", { ...(signal ? { signal } : {}), params: { path: { id } } }));
}

export function createRule(definition: RuleDefinition): Promise<Rule> {
  return body(client.POST("/rules", { body: definition }));
}

/** Replaces a rule as it was in a version; another version is refused with 412. */
export function updateRule(id: string, version: number, definition: RuleDefinition): Promise<Rule> {
  const params = { path: { id }, header: { "If-Match": `"${version}"` } };
  return body(client.PUT("/rules/{id}", { params, body: definition }));
}

export function duplicateRule(id: string): Promise<Rule> {
  return body(client.POST("/rules/{id}/duplicate", { params: { path: { id } } }));
}

/** Sends each webhook of a rule one message about an exchange or a made-up one, marked as a test. */
export async function testRule(id: string, exchange: ExchangeRef | undefined): Promise<TestResult[]> {
  const asked = exchange ? { exchange } : {};
  return (await body(client.POST("/rules/{id}/test", { params: { path: { id } }, body: asked }))).items;
}

/** What a definition would have raised in the last hours. */
export function rulePreview(definition: RuleDefinition, hours: number) {
  return queryOptions({
    queryKey: ["rulePreview", hours, definition] as const,
    queryFn: ({ signal }) => body(client.POST("/rules/preview", { signal, body: { definition, hours } })),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    meta: { afterOutage: true },
  });
}

/** The alerts that a rule would raise only as defined here, and those that it would raise only as stored. */
export function ruleDifference(id: string, version: number, definition: RuleDefinition, hours: number) {
  return queryOptions({
    queryKey: ["ruleDifference", id, version, hours, definition] as const,
    queryFn: ({ signal }) =>
      body(
        client.POST("/rules/{id}/preview/difference", {
          signal,
          params: { path: { id } },
          body: { definition, hours },
        }),
      ),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });
}

/** Whether a query is for the replays of a rule. */
export const isReplays = ([all, , part]: readonly unknown[]) => all === ruleKeys.all[0] && part === "replays";

/** The newest replays of a rule, and the time before which none may begin. */
export function ruleReplays(id: string) {
  return queryOptions({
    queryKey: [...ruleKeys.all, id, "replays"] as const,
    queryFn: ({ signal }) => body(client.GET("/rules/{id}/replays", { signal, params: { path: { id } } })),
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ state }) => state === "RUNNING") ? runningPollMs : troublePollMs,
  });
}

/** What a replay would raise. */
export function previewReplay(id: string, range: RuleReplayRange): Promise<RuleReplayPreview> {
  return body(client.POST("/rules/{id}/replays/preview", { params: { path: { id } }, body: range }));
}

export function startReplay(id: string, range: RuleReplayRange, messages: RuleReplayMessages): Promise<RuleReplay> {
  return body(client.POST("/rules/{id}/replays", { params: { path: { id } }, body: { ...range, messages } }));
}

export function cancelReplay(id: string): Promise<RuleReplay> {
  return body(client.POST("/replays/{id}/cancel", { params: { path: { id } } }));
}

/** The message that templates make for an exchange. */
export function templatePreview(request: TemplatePreviewRequest) {
  return queryOptions({
    queryKey: ["templatePreview", request] as const,
    queryFn: ({ signal }) => body(client.POST("/templates/preview", { signal, body: request })),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });
}

export async function deleteRule(id: string): Promise<void> {
  await body(client.DELETE("/rules/{id}", { params: { path: { id } } }));
}

export function setRuleEnabled(id: string, enabled: boolean): Promise<Rule> {
  const params = { path: { id } };
  return body(enabled ? client.POST("/rules/{id}/enable", { params }) : client.POST("/rules/{id}/disable", { params }));
}

/** Makes the next pass evaluate a rule that could not be evaluated. */
export function retryRule(id: string): Promise<Rule> {
  return body(client.POST("/rules/{id}/retry", { params: { path: { id } } }));
}

/** Compares a rule's alerts with the matching exchanges, which may take a while. */
export function reconcileRule(id: string): Promise<Reconciliation> {
  return body(client.POST("/rules/{id}/reconcile", { params: { path: { id } } }));
}
