import { expect, test } from "vitest";
import { sentence } from "./sentence";

test.each([
  [{}, [], "Whenever an exchange fails, show it in the inbox and send no message."],
  [
    { fireMode: "DURATION_IN_WINDOW", percentile: 99, durationMs: 2500, minVolume: 1, windowSeconds: 600 },
    ["#ops"],
    "Whenever the p99 duration of exchanges that end is 2,500 ms or more within 10 min, notify #ops.",
  ],
  [
    { scope: { applications: ["orders"], environments: ["production"] }, filter: { statuses: ["FAILED"] } },
    ["#ops"],
    "Whenever an exchange of orders fails in production, notify #ops once.",
  ],
  [
    {
      scope: { routes: ["a", "b", "c-*"] },
      filter: { statuses: ["COMPLETED"], minDurationMs: 500, errorTypes: ["X"], errorMessageContains: "IBAN" },
    },
    ["#ops", "desk"],
    "Whenever an exchange on a, b or c-* completes with X with “IBAN” in its error after 500 ms or more, notify #ops and desk once.",
  ],
  [
    { resolution: { afterSeconds: 604_800, evidence: "CORRELATION_ID" } },
    ["#ops"],
    "Whenever an exchange fails, notify #ops once; the alert resolves after 7 d, or when a later exchange with the same correlation ID completes.",
  ],
  [
    { resolution: { evidence: "ATTRIBUTE", attribute: "orderId" }, notifyOnResolve: true },
    ["#ops"],
    "Whenever an exchange fails, notify #ops once; the alert resolves when a later exchange of the same route with the same orderId completes, with a message.",
  ],
  [
    { resolution: { afterSeconds: 5400 }, notifyOnResolve: true },
    [],
    "Whenever an exchange fails, show it in the inbox and send no message; the alert resolves after 1 h 30 min.",
  ],
  [
    {
      fireMode: "COUNT_IN_WINDOW",
      scope: { applications: ["orders"] },
      threshold: 5,
      windowSeconds: 600,
      groupBy: "ROUTE",
      reNotifyMinutes: 60,
      notifyOnResolve: true,
    },
    ["#ops"],
    "Whenever at least 5 exchanges of orders fail within 10 min on one route, notify #ops; again every 60 min until acknowledged; and when it is over.",
  ],
  [
    {
      fireMode: "COUNT_IN_WINDOW",
      filter: { statuses: ["COMPLETED"], errorMessageContains: "late" },
      threshold: 20,
      windowSeconds: 5400,
      groupBy: "ENVIRONMENT",
      forDurationSeconds: 120,
      reNotifyMinutes: 0,
      notifyOnResolve: false,
    },
    ["#ops", "desk"],
    "Whenever at least 20 exchanges complete with “late” in their error within 1 h 30 min in one environment and that lasts 2 min, notify #ops and desk.",
  ],
  [
    { fireMode: "COUNT_IN_WINDOW", threshold: 1, windowSeconds: 30, reNotifyMinutes: 5, notifyOnResolve: true },
    [],
    "Whenever at least 1 exchange fails within 30 s, show it in the inbox and send no message.",
  ],
  [
    {
      fireMode: "RATIO_IN_WINDOW",
      scope: { applications: ["orders"] },
      percent: 12.5,
      minVolume: 20,
      windowSeconds: 3600,
      shortWindowSeconds: 300,
      groupBy: "ROUTE",
    },
    ["#ops"],
    "Whenever at least 12.5% of exchanges of orders fail within 1 h and within the last 5 min with at least 20 exchanges on one route, notify #ops.",
  ],
  [
    {
      fireMode: "DURATION_IN_WINDOW",
      filter: { statuses: ["COMPLETED", "FAILED"] },
      percentile: 99,
      durationMs: 2500,
      minVolume: 1,
      windowSeconds: 600,
    },
    ["#ops"],
    "Whenever the p99 duration of exchanges that end is 2,500 ms or more within 10 min, notify #ops.",
  ],
  [
    {
      ...{ fireMode: "ABSENT_IN_WINDOW", threshold: 1, windowSeconds: 600, groupBy: "ROUTE", expected: ["a", "b"] },
      filter: { statuses: ["COMPLETED", "FAILED"] },
      calendar: {
        timeZone: "Europe/Berlin",
        weekdays: ["FRI", "MON", "TUE", "WED", "THU"],
        from: "08:00",
        to: "18:00",
      },
    },
    ["#ops"],
    "Whenever no exchange ends within 10 min on one route of 2 that are listed on Mon to Fri from 08:00 to 18:00 (Europe/Berlin), notify #ops.",
  ],
  [
    { fireMode: "ABSENT_IN_WINDOW", threshold: 5, windowSeconds: 600, groupBy: "ROUTE", learnDays: 7 },
    ["#ops"],
    "Whenever fewer than 5 exchanges end within 10 min on one route of those seen within 7 d, notify #ops.",
  ],
  [
    { fireMode: "ABSENT_IN_WINDOW", threshold: 5, windowSeconds: 600, groupBy: "ROUTE", expected: ["a"] },
    ["#ops"],
    "Whenever fewer than 5 exchanges end within 10 min on one route of 1 that is listed, notify #ops.",
  ],
  [
    { fireMode: "ABSENT_IN_WINDOW", threshold: 5, windowSeconds: 600, groupBy: "ROUTE", learnDays: 0, expected: [] },
    ["#ops"],
    "Whenever fewer than 5 exchanges end within 10 min on one route of those that are listed, notify #ops.",
  ],
  [
    {
      ...{ fireMode: "COUNT_IN_WINDOW", threshold: 5, windowSeconds: 600 },
      groupBy: "ATTRIBUTE",
      groupByAttribute: "customer",
    },
    ["#ops"],
    "Whenever at least 5 exchanges fail within 10 min with one value of customer, notify #ops.",
  ],
  [
    { fireMode: "RATIO_IN_WINDOW" },
    [],
    "Whenever some percentage of exchanges fail within some time, show it in the inbox and send no message.",
  ],
  [{ fireMode: "COUNT_IN_WINDOW" }, ["x"], "Whenever some number of exchanges fail within some time, notify x."],
  [
    {
      scope: { environments: ["production", "test"] },
      filter: {
        maxDurationMs: 2000,
        attributes: [
          { key: "customer", op: "EQUALS", value: "ACME" },
          { key: "order", op: "EXISTS" },
          { key: "region", op: "MATCHES", value: "eu-.*" },
        ],
      },
    },
    ["x"],
    "Whenever an exchange fails in production or test after 2 s or less with customer = “ACME” with order with region that matches eu-.*, notify x once.",
  ],
  [
    {
      scope: {
        routes: ["order-*"],
        notRoutes: ["order-test", "order-mock"],
        notApplications: ["billing"],
        notEnvironments: ["test"],
      },
      filter: {
        notErrorTypes: ["Cancelled"],
        errorMessageNotContains: ["retry later", "busy"],
        errorMessageNotMatches: ["^health"],
        attributes: [
          { key: "customer", not: true, op: "EQUALS", value: "ACME" },
          { key: "order", not: true, op: "EXISTS" },
          { key: "region", op: "IN", values: ["eu", "us"] },
          { key: "tier", not: true, op: "IN", values: ["a", "b"] },
          { key: "kind", not: true, op: "MATCHES", value: "x.*" },
          { key: "amount", op: "AT_LEAST", value: "99.5" },
          { key: "tries", not: true, op: "GREATER_THAN", value: "3" },
        ],
      },
    },
    ["x"],
    "Whenever an exchange on order-* except order-test and order-mock of any application except billing fails in any environment except test other than with Cancelled without “retry later” or “busy” in its error without an error that matches ^health with customer ≠ “ACME” without order with region = “eu” or “us” with tier ≠ “a” and “b” with kind that does not match x.* with amount ≥ 99.5 with tries not > 3, notify x once.",
  ],
  [
    { filter: { minDurationMs: 1500, maxDurationMs: 60_000 } },
    ["x"],
    "Whenever an exchange fails after 1,500 ms to 1 min, notify x once.",
  ],
  [{ filter: { statuses: ["FAILED", "COMPLETED"] } }, ["x"], "Whenever an exchange ends, notify x once."],
] as const)("%j", (rule, webhooks, want) => {
  expect(sentence(structuredClone(rule) as Parameters<typeof sentence>[0], webhooks)).toBe(want);
});
