import { initialValues, type Values } from "./values";

/** A rule to begin with. */
export interface Starter {
  name: string;
  explains: string;
  values: Values;
}

/** The beginning of most rules. The person chooses names and webhooks. */
export const starters: readonly Starter[] = [
  {
    name: "Every failure",
    explains: "One alert and one message for each exchange that fails.",
    values: { ...initialValues, name: "Failed exchanges" },
  },
  {
    name: "Repeated failures",
    explains: "One alert while at least 5 exchanges of a route fail within 10 minutes.",
    values: {
      ...initialValues,
      name: "Repeated failures",
      fireMode: "COUNT_IN_WINDOW",
      threshold: 5,
      windowSeconds: 600,
      groupBy: "ROUTE",
    },
  },
  {
    name: "Slow exchanges",
    explains: "One alert for each exchange that takes 30 seconds or more, whether it fails or not.",
    values: {
      ...initialValues,
      name: "Slow exchanges",
      severity: "WARNING",
      filter: { ...initialValues.filter, statuses: ["COMPLETED", "FAILED"], minDurationMs: 30_000 },
    },
  },
  {
    name: "Failure ratio",
    explains: "One alert while at least 10% of a route's exchanges fail, if there are at least 20 in 10 minutes.",
    values: {
      ...initialValues,
      name: "Failure ratio",
      fireMode: "RATIO_IN_WINDOW",
      percent: 10,
      minVolume: 20,
      windowSeconds: 600,
      groupBy: "ROUTE",
    },
  },
  {
    name: "Slow routes",
    explains:
      "One alert while 5% of a route's exchanges take 2 seconds or more, if there are at least 20 in 10 minutes.",
    values: {
      ...initialValues,
      name: "Slow routes",
      severity: "WARNING",
      fireMode: "DURATION_IN_WINDOW",
      percentile: 95,
      durationMs: 2000,
      minVolume: 20,
      windowSeconds: 600,
      groupBy: "ROUTE",
      filter: { ...initialValues.filter, statuses: ["COMPLETED", "FAILED"] },
    },
  },
  {
    name: "Silent routes",
    explains: "One alert while a route that was active in the last 7 days has had no exchange for 30 minutes.",
    values: {
      ...initialValues,
      name: "Silent routes",
      severity: "WARNING",
      fireMode: "ABSENT_IN_WINDOW",
      threshold: 1,
      windowSeconds: 1800,
      intervalSeconds: 10,
      groupBy: "ROUTE",
      learnDays: 7,
      filter: { ...initialValues.filter, statuses: ["COMPLETED", "FAILED"] },
    },
  },
  {
    name: "Connection problems",
    explains: "One alert while at least 3 exchanges of an application fail to connect within 5 minutes.",
    values: {
      ...initialValues,
      name: "Connection problems",
      fireMode: "COUNT_IN_WINDOW",
      threshold: 3,
      windowSeconds: 300,
      groupBy: "APPLICATION",
      filter: { ...initialValues.filter, errorMessageMatches: "(?i)connect|timed? ?out|refused|unreachable" },
    },
  },
];
