import { createMemoryHistory } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import { type UserEvent, userEvent } from "@testing-library/user-event";
import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, vi } from "vitest";
import type { Role } from "../api/access";
import { createCache } from "../api/cache";
import type {
  Alert,
  AlertCounts,
  AlertGroup,
  AlertSelection,
  DeliverySummary,
  Exchange,
  Issue,
  Problem,
} from "../api/client";
import { App } from "../app/App";
import { createAppRouter } from "../app/router";
import { ruleHandlers } from "./rules";

/** What answers the page's requests: enough of the API, over plain data that a test may change at any time. */
export interface World {
  alerts: Alert[];
}

export const api = (path: string) => `${globalThis.location.origin}/api/v1${path}`;

/** Answers who is signed in: Ada, with a role. */
export function signedInAs(role: Role) {
  return http.get(api("/me"), () =>
    HttpResponse.json({ kind: "user", id: "u1", name: "Ada", email: "ada@example.com", role, tenant: "default" }),
  );
}

export function problem(status: number, answer: Partial<Problem>) {
  return HttpResponse.json(
    { type: "about:blank", title: "Refused", status, code: "invalid", requestId: "r-1", ...answer },
    { status, headers: { "Content-Type": "application/problem+json" } },
  );
}

export function countsOf(alerts: readonly Alert[]): AlertCounts {
  const count = (state: Alert["state"]) => alerts.filter((alert) => alert.state === state).length;
  return {
    pending: count("PENDING"),
    firing: count("FIRING"),
    acknowledged: count("ACKNOWLEDGED"),
    resolved: count("RESOLVED"),
  };
}

/** Each stream that the page has opened, newest last. */
export const streams: FakeStream[] = [];

export class FakeStream extends EventTarget {
  onerror: (() => void) | null = null;
  closed = false;
  readonly url: string;
  constructor(url: string) {
    super();
    this.url = url;
    streams.push(this);
  }
  close() {
    this.closed = true;
  }
  beat(intervalSeconds: number) {
    this.dispatchEvent(new MessageEvent("beat", { data: JSON.stringify({ intervalSeconds }) }));
  }
  tell(counts: AlertCounts, changed?: readonly string[]) {
    this.dispatchEvent(new MessageEvent("alerts", { data: JSON.stringify({ counts, changed }) }));
  }
}

function matching(alerts: readonly Alert[], query: URLSearchParams): Alert[] {
  const asked = (name: string, value: string) => {
    const values = query.getAll(name);
    return values.length === 0 || values.includes(value);
  };
  return alerts.filter(
    ({ id, state, severity, title, message, exchange }) =>
      asked("id", id) &&
      asked("state", state) &&
      asked("severity", severity) &&
      asked("application", exchange?.application ?? "") &&
      asked("route", exchange?.route ?? "") &&
      `${title} ${message}`.toLowerCase().includes((query.get("q") ?? "").toLowerCase()),
  );
}

/** Alerts with the same error, application and route as one group each, in the order in which they come. */
export function issuesOf(alerts: readonly Alert[]): AlertGroup[] {
  const issues = new Map<string, Alert[]>();
  for (const alert of alerts) {
    const { application, route, errorType } = alert.exchange ?? {};
    const key = alert.count ? alert.id : [application, route, errorType].join(" ");
    issues.set(key, [...(issues.get(key) ?? []), alert]);
  }
  return [...issues.values()].flatMap((list) => {
    const [newest] = list;
    const first = list.at(-1);
    if (!newest || !first) return [];
    const { application = "", route = "", errorType = "" } = newest.exchange ?? {};
    const unread = list.filter((alert) => alert.unread).length;
    const trend = Array.from({ length: 24 }, (_, hour) => (hour === 23 ? list.length : 0));
    return [
      {
        ...countsOf(list),
        application,
        route,
        signature: errorType,
        count: list.length,
        unread,
        newest,
        severity:
          (["CRITICAL", "WARNING", "INFO"] as const).find((one) => list.some(({ severity }) => severity === one)) ??
          newest.severity,
        firstAt: first.firedAt,
        trend,
        ...(list.some(({ delivery }) => delivery) ? { delivery: together(list), deliveryAlerts: list.length } : {}),
      },
    ];
  });
}

/** The messages of some alerts. */
function together(alerts: readonly Alert[]): DeliverySummary {
  const all = { total: 0, delivered: 0, retrying: 0, failed: 0, suppressed: 0, discarded: 0 };
  for (const { delivery } of alerts) {
    for (const state of Object.keys(all) as (keyof typeof all)[]) all[state] += delivery?.[state] ?? 0;
  }
  return all;
}

/** Starts the server side of the tests in a file, and returns it with its data. */
export function startWorld() {
  const world: World = { alerts: [] };
  const find = (id: unknown) => world.alerts.find((alert) => alert.id === id);
  const server = setupServer(
    ...ruleHandlers,
    http.get(api("/alerts"), ({ request }) =>
      HttpResponse.json({ items: matching(world.alerts, new URL(request.url).searchParams) }),
    ),
    http.get(api("/alerts/groups"), ({ request }) => {
      const query = new URL(request.url).searchParams;
      const items = query.get("by") === "issue" ? issuesOf(matching(world.alerts, query)) : [];
      return HttpResponse.json({ items, asOf: new Date().toISOString() });
    }),
    http.get(api("/alerts/assignees"), () => HttpResponse.json({ items: ["ada@example.com", "bo@example.com"] })),
    http.get(api("/alerts/issue/notes"), () => HttpResponse.json({ items: [] })),
    http.get(api("/alerts/:id/notes"), () => HttpResponse.json({ items: [] })),
    http.get(api("/alerts/counts"), () => HttpResponse.json(countsOf(world.alerts))),
    http.get(api("/alerts/:id/notifications"), () => HttpResponse.json({ items: [] })),
    http.post(api("/alerts/read"), () => HttpResponse.json({ changed: 1 })),
    http.get(api("/alerts/:id/usual-duration"), () => HttpResponse.json({ exchanges: 0 })),
    http.post(api("/alerts/:action"), async ({ request, params }) => {
      const { ids, actionId } = (await request.json()) as AlertSelection;
      const meant = world.alerts.filter(({ id }) => ids?.includes(id));
      for (const alert of meant) alert.state = params.action === "resolve" ? "RESOLVED" : "ACKNOWLEDGED";
      const undoableUntil = new Date(Date.now() + 600_000).toISOString();
      return HttpResponse.json({ actionId, changed: meant.length, already: 0, refused: 0, unknown: 0, undoableUntil });
    }),
    http.get(api("/session"), () => HttpResponse.json({ signedIn: true, open: false, setupNeeded: false })),
    signedInAs("admin"),
    http.get(api("/rules"), () => HttpResponse.json({ items: [] })),
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [] })),
    http.get(api("/alerts/activity"), () =>
      HttpResponse.json({
        from: "2026-11-21T13:01:00Z",
        bucketSeconds: 60,
        complete: true,
        buckets: [0, 2],
        rules: [],
      }),
    ),
    http.get(api("/status/history"), () =>
      HttpResponse.json({ from: "2026-11-21T13:00:00Z", stepSeconds: 300, steps: [] }),
    ),
    http.get(api("/teams"), () => HttpResponse.json({ version: 1, teams: [] })),
    http.get(api("/routing"), () => HttpResponse.json({ version: 1, routes: [], defaultWebhookIds: [], rules: 0 })),
    http.get(api("/notifications/counts"), () =>
      HttpResponse.json({
        pending: 0,
        retrying: 0,
        delivered: 0,
        failed: 0,
        exhausted: 0,
        discarded: 0,
        suppressed: 0,
        complete: true,
      }),
    ),
    http.get(api("/webhooks/:id/activity"), () =>
      HttpResponse.json({ from: "2026-11-21T13:00:00Z", bucketSeconds: 3600, complete: true, buckets: [] }),
    ),
    // After the more specific paths.
    http.get(api("/alerts/:id"), ({ params }) => HttpResponse.json(find(params.id))),
    http.get(api("/status"), () => problem(503, { code: "unavailable" })),
  );
  beforeAll(() => {
    vi.stubGlobal("EventSource", FakeStream);
    server.listen({ onUnhandledRequest: "error" });
  });
  afterEach(() => {
    server.resetHandlers();
    world.alerts = [];
    streams.length = 0;
  });
  afterAll(() => {
    server.close();
    vi.unstubAllGlobals();
  });
  return { server, world };
}

/** Opens the whole application at an address, as a person does. */
export function open(address: string) {
  const router = createAppRouter(createMemoryHistory({ initialEntries: [address] }));
  const user = userEvent.setup();
  const cache = createCache();
  const { unmount } = render(<App cache={cache} router={router} />);
  return { router, user, cache, unmount };
}

/** An answer that the server holds back until the test releases it. */
export function held() {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { released, release };
}

let made = 0;

/** An alert that fired some seconds ago. */
export function anAlert(
  secondsAgo: number,
  change: Partial<Alert> & { route?: string } = {},
): Alert & { exchange: Exchange } {
  made += 1;
  const id = `0192f0c1-0000-7000-8000-${String(1e11 - made).padStart(12, "0")}`;
  const at = new Date(Date.now() - secondsAgo * 1000).toISOString();
  const { route = "order-to-erp", ...rest } = change;
  return {
    id,
    ruleId: "0192f0c1-0000-7000-8000-000000000900",
    ruleName: "Failed orders",
    ruleVersion: 1,
    severity: "CRITICAL",
    state: "FIRING",
    title: `orders · ${route}: FAILED`,
    message: "java.net.ConnectException: ERP refused",
    health: false,
    firedAt: at,
    exchange: {
      executionId: `ID-${made}`,
      startTime: at,
      environment: "production",
      application: "orders",
      route,
      status: "FAILED",
      durationNs: "12345678",
      errorType: "java.net.ConnectException",
      errorMessage: "ERP refused",
      correlationId: "",
    },
    ...rest,
  };
}

/** The instant some seconds ago. */
export const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

/** What is known about the issue of orders · import. */
export function anIssue(change: Partial<Issue> = {}): Issue {
  return {
    application: "orders",
    route: "import",
    signature: "java.net.ConnectException",
    severity: "CRITICAL",
    count: 12,
    firing: 9,
    acknowledged: 1,
    resolved: 2,
    firstAt: ago(3 * 86_400),
    newestAt: ago(120),
    trend: Array.from({ length: 24 }, (_, hour) => hour % 5),
    days: Array.from({ length: 14 }, (_, day) => day),
    rules: [{ ruleId: "0192f0c1-0000-7000-8000-000000000900", ruleName: "Failed orders", count: 12 }],
    places: [
      { application: "orders", route: "import", count: 12, firing: 9, newestAt: ago(120) },
      { application: "billing", route: "import", count: 3, firing: 0, newestAt: ago(7200) },
    ],
    placeCount: 2,
    lastResolution: { alertId: "0192f0c1-0000-7000-8000-000000000901", at: ago(3600), by: "Bo" },
    regressions: [{ alertId: "0192f0c1-0000-7000-8000-000000000902", at: ago(600), resolvedAt: ago(3600) }],
    regressionCount: 1,
    ...change,
  };
}

/** The status of a Tocsin that is well. */
export const aStatus = (version = "1.0") => ({
  replicaId: "a",
  version,
  startedAt: "2026-11-21T10:00:00Z",
  now: "2026-11-21T10:00:00Z",
  ready: true,
  dependencies: [],
});

/**
 * Enters a text at the end of a field at once. Key by key, a large form is rendered for each letter: that is for tests of
 * what happens between them.
 */
export async function paste(user: UserEvent, field: HTMLElement, text: string) {
  await user.click(field);
  await user.paste(text);
}
