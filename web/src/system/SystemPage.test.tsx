import { screen, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { beforeEach, describe, expect, test } from "vitest";
import { api, open, problem, startWorld } from "../test/world";

const { server } = startWorld();
const at = new Date(Date.now() - 60_000).toISOString();

beforeEach(() => {
  const replica = { host: "a", pid: 7, version: "1.2", roles: ["api", "dispatch"], startedAt: at, lastBeatAt: at };
  const idle = { partitions: [], claimedRules: 0, claimedNotifications: 1 };
  server.use(
    http.get(api("/status"), () =>
      HttpResponse.json({
        replicaId: "a-1",
        version: "1.2",
        startedAt: at,
        now: at,
        ready: true,
        dependencies: [
          { name: "postgres", reachable: true },
          { name: "clickhouse", reachable: false, error: "connection refused" },
        ],
        rules: { total: 3, enabled: 2, failing: 1, backfilling: 0, slowestLagSeconds: 40 },
        outbox: { depth: 1200, estimated: false, oldestAgeSeconds: 90 },
        partitions: [{ partition: 0, lagSeconds: 7, cursorAt: at, owner: "a-1" }, { partition: 1 }],
        completeness: { rules: 2, missing: 0, comparedAt: at, wholeSince: at },
      }),
    ),
    http.get(api("/replicas"), () =>
      HttpResponse.json({
        items: [
          { id: "a-1", ...replica, ...idle, lastBeatAgeSeconds: 0.4, alive: true },
          { id: "b-2", ...replica, ...idle, lastBeatAgeSeconds: 120, alive: false },
        ],
      }),
    ),
    http.get(api("/rules"), () =>
      HttpResponse.json({
        items: [
          {
            id: "r1",
            name: "Quick",
            enabled: true,
            fireMode: "PER_EXCHANGE",
            health: { lagSeconds: 1, lateLastHour: 3 },
          },
          { id: "r2", name: "Slow", enabled: true, fireMode: "COUNT_IN_WINDOW", health: { lagSeconds: 40 } },
        ],
      }),
    ),
    http.get(api("/webhooks"), () =>
      HttpResponse.json({
        items: [
          { id: "w1", name: "#ops", kind: "slack", ratePerSecond: 1, health: { state: "ok", consecutiveFailures: 0 } },
          {
            id: "w2",
            name: "erp",
            kind: "generic",
            ratePerSecond: 0,
            health: { state: "off", consecutiveFailures: 0, disabledReason: "the receiver answered 410" },
          },
        ],
      }),
    ),
  );
});

describe("the page of the system", () => {
  test("shows dependencies, replicas, the progress of rules, and which messages wait", async () => {
    open("/system");
    expect(await screen.findAllByText("Cannot be reached")).toHaveLength(2); // As a figure and as a source.
    expect(screen.getByText("1,200 messages")).toHaveAttribute("href", "/deliveries?status=pending&status=retrying");
    expect(screen.getByText("0 missing")).toBeVisible();
    expect(
      await screen.findByRole("row", { name: /a-1.*serves this page.*Alive: last heartbeat less than 1 s ago/ }),
    ).toBeVisible();
    expect(
      screen.getByRole("row", { name: /b-2.*Dead: no heartbeat for 2 min\. Other replicas take over its work\. / }),
    ).toBeVisible();
    const slowest = within(await screen.findByRole("region", { name: "Rules, slowest first" }));
    const rules = await slowest.findAllByRole("row", { name: /behind/ });
    expect(rules.map((row) => within(row).getByRole("link").textContent)).toEqual(["Slow", "Quick"]);
    expect(rules[1]).toHaveTextContent("3 arrived late");
    expect(screen.getByText(/the receiver answered 410/)).toBeVisible();
    expect(screen.queryByText("#ops")).toBeNull();
  });

  test("shows the day that the server has kept, with its gaps, and the partitions", async () => {
    server.use(
      http.get(api("/status/history"), () =>
        HttpResponse.json({
          from: at,
          stepSeconds: 300,
          steps: [
            {},
            { lagSeconds: 75, messages: 12, oldestSeconds: 3, replicas: 2, partitions: 8, partitionsHeld: 8 },
          ],
        }),
      ),
    );
    open("/system");
    const lag = await screen.findByRole("img", {
      name: /^Evaluation lag of the slowest partition\. Lag: peak 1 min/,
    });
    expect(lag.closest("figure")).toHaveTextContent("Late after");
    expect(screen.getByRole("img", { name: /^Messages to deliver\. Messages: peak 12/ })).toBeInTheDocument();
    expect(screen.getByRole("row", { name: /ClickHouse Cannot be reached.*7 s behind/ })).toBeVisible();
    const partitions = within(screen.getByRole("region", { name: "Partitions" }));
    expect(partitions.getByRole("row", { name: /0.*7 s behind.*a-1/ })).toBeVisible();
    expect(partitions.getByRole("row", { name: /1.*No rules evaluated.*No replica/ })).toBeVisible();
  });

  test("compares a rule with its exchanges, and tells what is missing", async () => {
    server.use(
      http.post(api("/rules/:id/reconcile"), () =>
        HttpResponse.json({
          ruleId: "r1",
          from: at,
          to: at,
          matching: 5,
          alerted: 4,
          missing: 1,
          missingSample: ["x-9"],
          lateDropped: 0,
          unexpected: 0,
        }),
      ),
    );
    const { user } = open("/system");
    await user.click(await screen.findByRole("button", { name: "Compare Quick" }));
    expect(await screen.findByText(/4 of 5 matching exchanges have an alert; 1 missing: x-9/)).toBeVisible();
    expect(screen.getByRole("button", { name: "Compare Slow" })).toBeVisible();
  });

  test("shows the parts that can be read when another one cannot", async () => {
    server.use(
      http.get(api("/replicas"), () => problem(503, { code: "unavailable", detail: "Postgres cannot be reached." })),
    );
    open("/system");
    expect(await screen.findByText("0 missing")).toBeVisible();
    expect(
      await screen.findByText(/The replicas could not be loaded. Postgres cannot be reached./, {}, { timeout: 15_000 }),
    ).toBeVisible();
  });
});
