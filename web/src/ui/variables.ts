/** A name that templates may contain between braces. */
export interface Variable {
  name: string;
  description: string;
}

/** The prefix of attributes of the exchange. */
export const attributePrefix = "exchange.attributes.";

/** The prefix of labels of the rule. */
export const labelPrefix = "rule.labels.";

/**
 * Every variable and list of titles and messages, except labels and attributes by key;
 * testdata/template_variables.json checks it against the API.
 */
export const variables: readonly Variable[] = [
  { name: "exchange.application", description: "The application that ran the exchange" },
  { name: "exchange.route", description: "The route, job or request" },
  { name: "exchange.environment", description: "The environment, such as production" },
  { name: "exchange.executionId", description: "The execution ID" },
  { name: "exchange.status", description: "COMPLETED or FAILED" },
  { name: "exchange.startTime", description: "When it started, RFC 3339 with nanoseconds, UTC" },
  {
    name: "exchange.endTime",
    description: "When it ended, in the format of startTime; empty if the source does not provide it",
  },
  { name: "exchange.duration", description: "How long it took, with its unit: 12 ms, 1.234 s" },
  { name: "exchange.durationMs", description: "How long it took, in milliseconds" },
  { name: "exchange.errorType", description: "The type of the error; empty if there is none" },
  { name: "exchange.errorMessage", description: "The error's message" },
  { name: "exchange.errorStack", description: "The error's stack trace" },
  { name: "exchange.stackTop", description: "The first line of the stack that is not from a framework" },
  { name: "exchange.correlationId", description: "The ID that related exchanges share" },
  {
    name: "count.observed",
    description:
      "How many exchanges matched within the window; for durations, how many lasted at least as long as the threshold; empty for an alert about one exchange",
  },
  {
    name: "count.value",
    description:
      "The value that is compared with the threshold, with its unit: 7, 12.5%, 2.4 s; empty for an alert about one exchange",
  },
  {
    name: "count.threshold",
    description: "The threshold, with its unit: 5, 10%, 2 s; empty for an alert about one exchange",
  },
  {
    name: "count.volume",
    description:
      "The number of exchanges from which a ratio or a percentile was calculated; empty for an alert about one exchange",
  },
  {
    name: "count.percentile",
    description: "The percentile of a rule about durations, such as 95; empty for an alert about one exchange",
  },
  { name: "count.window", description: "The window, with its unit: 10 min; empty for an alert about one exchange" },
  { name: "count.windowSeconds", description: "The window in seconds; empty for an alert about one exchange" },
  {
    name: "count.group",
    description:
      "The group: the route, application, environment, error type or value of an attribute; empty for an alert about one exchange",
  },
  { name: "rule.name", description: "The rule's name" },
  { name: "rule.id", description: "The rule's ID" },
  { name: "rule.owner", description: "Who owns the rule, such as a team" },
  { name: "rule.runbookUrl", description: "The URL of the rule's runbook" },
  { name: "rule.note", description: "The rule's note" },
  { name: "alert.severity", description: "CRITICAL, WARNING or INFO" },
  {
    name: "exchange.attributeList",
    description: "A section for each attribute, in the order of their keys: {{key}} and {{value}}",
  },
  { name: "exchange.stackLines", description: "A section for each line of the stack trace: {{.}}" },
];

/** The variables of a message's body, which also include those of the alert. */
export const bodyVariables: readonly Variable[] = [
  ...variables,
  { name: "alert.id", description: "The alert's ID; the same in every message about the alert" },
  { name: "alert.title", description: "The alert's title" },
  { name: "alert.message", description: "The alert's message" },
  { name: "alert.firedAt", description: "When the alert was raised, RFC 3339, UTC" },
  { name: "alert.url", description: "The URL of the alert; empty if no public URL is configured" },
  {
    name: "alert.reason",
    description:
      "Why the message is sent: FIRED, REMINDER, SNOOZE_ENDED, ESCALATED, ACKNOWLEDGED, RESOLVED or REOPENED",
  },
  {
    name: "alert.resolution",
    description: "How the alert was resolved: the person who did it, or why Tocsin did; empty until then",
  },
];

/** The variables, with these labels, and the attributes of these keys. */
export function withKeys(labels: readonly string[], keys: readonly string[]): Variable[] {
  const description = "An attribute of the exchange; empty if the exchange does not have it";
  return [
    ...variables,
    ...labels.map((name) => ({ name: labelPrefix + name, description: "A label of the rule" })),
    ...keys.map((key) => ({ name: attributePrefix + key, description })),
  ];
}
