import { HttpResponse, http } from "msw";
import type { Rule, RuleDifference, RulePreview, TemplatePreview } from "../api/client";

const api = (path: string) => `${globalThis.location.origin}/api/v1${path}`;

export const noPreview: RulePreview = {
  from: "2026-11-20T14:00:00Z",
  to: "2026-11-21T14:00:00Z",
  coveredFrom: "2026-11-20T14:00:00Z",
  truncated: false,
  scanned: 0,
  alerts: 0,
  bucketSeconds: 1440,
  buckets: [0, 0],
  shares: [],
  newest: [],
  webhooks: [],
};

const message: TemplatePreview = {
  title: "orders",
  message: "ERP refused",
  request: {
    method: "POST",
    host: "",
    contentType: "application/json",
    headers: [],
    body: JSON.stringify({ blocks: [{ type: "header", text: { type: "plain_text", text: "🔴 CRITICAL orders" } }] }),
  },
};

/** The requests that the pages about rules send by themselves. */
export const ruleHandlers = [
  // The names of the rules that the test has.
  http.get(api("/rules/names"), async () => {
    const { items }: { items: Rule[] } = await (await fetch(api("/rules?limit=200"))).json();
    return HttpResponse.json({ items: items.map(({ id, name, enabled }) => ({ id, name, enabled })) });
  }),
  http.post(api("/rules/preview"), () => HttpResponse.json(noPreview)),
  http.post(api("/rules/:id/preview/difference"), () => HttpResponse.json(noDifference)),
  http.get(api("/rules/:id/replays"), () => HttpResponse.json({ items: [] })),
  http.post(api("/templates/preview"), () => HttpResponse.json(message)),
  http.get(api("/exchanges"), () => HttpResponse.json({ items: [] })),
  http.get(api("/exchanges/facets"), () => HttpResponse.json({ items: [] })),
];

/** No alert that an edit adds or removes. */
export const noDifference: RuleDifference = {
  from: "2026-11-21T14:00:00Z",
  to: "2026-11-22T14:00:00Z",
  coveredFrom: "2026-11-21T14:00:00Z",
  truncated: false,
  scanned: 0,
  before: 0,
  after: 0,
  added: { alerts: 0, newest: [] },
  removed: { alerts: 0, newest: [] },
};

export function aRule(change: Partial<Rule> = {}): Rule {
  return {
    id: "0192f0c1-0000-7000-8000-000000000900",
    version: 3,
    createdAt: "2026-11-20T14:00:00Z",
    updatedAt: "2026-11-20T14:00:00Z",
    armedSince: "2026-11-20T14:00:00Z",
    name: "Failed orders",
    enabled: true,
    fireMode: "PER_EXCHANGE",
    severity: "CRITICAL",
    scope: { applications: ["orders"] },
    filter: { statuses: ["FAILED"] },
    titleTemplate: "",
    messageTemplate: "",
    webhookIds: [],
    targets: [],
    intervalSeconds: 1,
    lookBackSeconds: 3600,
    threshold: 0,
    windowSeconds: 0,
    notifyOnResolve: false,
    reNotifyMinutes: 0,
    forDurationSeconds: 0,
    ...change,
  };
}
