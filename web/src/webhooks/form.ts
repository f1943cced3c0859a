import type { Webhook, WebhookDefinition, WebhookEdit, WebhookEvent } from "../api/client";
import type { Kept, Kind } from "../drafts/draft";
import type { Conflict, Side } from "../ui/ConflictDialog";
import { unlike } from "../ui/difference";
import { hoursWords } from "../ui/hours";
import { period } from "../ui/time";
import { messagesWord, number } from "../ui/words";

/** The content of the form. Numbers are texts: an empty one means the default. */
export type Values = {
  name: string;
  kind: WebhookDefinition["kind"];
  url: string;
  /** Whether a generic webhook is for a receiver, with `receiver` and `inputs`, instead of `url`. */
  forReceiver: boolean;
  receiver: string;
  inputs: Record<string, string>;
  /** The names of inputs that are not secret. */
  openInputs: string[];
  /** Whether a Slack webhook posts as a bot, with `slack`, or to `url`. */
  bot: boolean;
  slack: { channel: string; botToken: string; signingSecret: string; threads: boolean };
  /** Whether the headers are written again, because their present values cannot be read. */
  replaceHeaders: boolean;
  /** One header per line: `Name: value`. */
  headers: string;
  bodyTemplate: string;
  signingSecret: string;
  operators: boolean;
  events: WebhookEvent[];
  eventMaxAgeSeconds: string;
  quietHours: NonNullable<WebhookDefinition["quietHours"]>;
  timeoutSeconds: string;
  maxConcurrent: string;
  ratePerSecond: string;
  digestAbove: string;
};

/** The names of fields in the API's errors. */
export const fields = [
  "name",
  "kind",
  "url",
  "preset.id",
  "slack.channel",
  "slack.botToken",
  "slack.signingSecret",
  "slack.threads",
  "headers",
  "bodyTemplate",
  "signingSecret",
  "operators",
  "events",
  "eventMaxAgeSeconds",
  "quietHours",
  "timeoutSeconds",
  "maxConcurrent",
  "ratePerSecond",
  "digestAbove",
] as const;

/** Those names, and the names of a receiver's inputs. */
export const fieldsOf = ({ inputs }: Values): string[] => [
  ...fields,
  ...Object.keys(inputs).map((name) => `preset.inputs.${name}`),
];

export const blank: Values = {
  name: "",
  kind: "slack",
  url: "",
  forReceiver: false,
  receiver: "",
  inputs: {},
  openInputs: [],
  bot: false,
  slack: { channel: "", botToken: "", signingSecret: "", threads: false },
  replaceHeaders: false,
  headers: "",
  bodyTemplate: "",
  signingSecret: "",
  operators: false,
  events: [],
  eventMaxAgeSeconds: "",
  quietHours: [],
  timeoutSeconds: "",
  maxConcurrent: "",
  ratePerSecond: "",
  digestAbove: "",
};

/** The events of alerts that a webhook may choose, in the order of an alert's life. */
export const eventWords: Record<WebhookEvent, string> = {
  ACKNOWLEDGED: "Acknowledged",
  RESOLVED: "Resolved",
  REOPENED: "Reopened",
};

export const webhookKind: Kind<Values> = { word: "webhook", blank };

export type KeptWebhook = Kept<Values, Webhook>;

/** What a browser may store of a form: not the parts that a webhook stores encrypted. */
export function withoutSecrets(values: Values): Values {
  const { slack, inputs, openInputs } = values;
  return {
    ...values,
    url: "",
    inputs: Object.fromEntries(
      Object.entries(inputs).map(([name, text]) => [name, openInputs.includes(name) ? text : ""]),
    ),
    headers: "",
    // If no headers were written, the present ones stay.
    replaceHeaders: false,
    signingSecret: "",
    slack: { ...slack, botToken: "", signingSecret: "" },
  };
}

export const same = (a: Values, b: Values): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The content of the form for a webhook. Secrets are empty, which keeps them as they are. */
export function valuesOf(webhook: Webhook): Values {
  const { name, kind, slack, preset, bodyTemplate, operators } = webhook;
  const unset = Object.fromEntries((preset?.secretInputs ?? []).map((input) => [input, ""]));
  return {
    ...blank,
    name,
    kind,
    forReceiver: preset !== undefined,
    receiver: preset?.id ?? "",
    inputs: { ...preset?.inputs, ...unset },
    openInputs: Object.keys(preset?.inputs ?? {}),
    bot: slack !== undefined,
    slack: { ...blank.slack, channel: slack?.channel ?? "", threads: slack?.threads ?? false },
    bodyTemplate,
    operators,
    events: [...webhook.events].sort(),
    eventMaxAgeSeconds: String(webhook.eventMaxAgeSeconds),
    quietHours: webhook.quietHours ?? [],
    timeoutSeconds: String(webhook.timeoutSeconds),
    maxConcurrent: String(webhook.maxConcurrent),
    ratePerSecond: String(webhook.ratePerSecond),
    digestAbove: String(webhook.digestAbove),
  };
}

/** Parses `Name: value`, one per line. A line without a colon is a name without a value, which the API refuses. */
export function parseHeaders(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(":");
      return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

function pace({ timeoutSeconds, maxConcurrent, ratePerSecond, digestAbove, eventMaxAgeSeconds }: Values) {
  const given = Object.entries({ timeoutSeconds, maxConcurrent, ratePerSecond, digestAbove, eventMaxAgeSeconds })
    .filter(([, text]) => text.trim() !== "")
    .map(([name, text]) => [name, Number(text)]);
  return Object.fromEntries(given) as Partial<
    Record<"timeoutSeconds" | "maxConcurrent" | "ratePerSecond" | "digestAbove" | "eventMaxAgeSeconds", number>
  >;
}

/** Fields that do not apply to a kind are not sent, whatever was typed before the kind was changed. */
export function definition(values: Values): WebhookDefinition {
  if (values.kind === "generic" && values.forReceiver) return receiverDefinition(values);
  const { name, kind, url, bot, slack, headers, bodyTemplate, signingSecret, operators, events, quietHours } = values;
  const { channel, botToken, signingSecret: slackSecret, threads } = slack;
  const isBot = kind === "slack" && bot;
  return {
    name,
    kind,
    ...(isBot
      ? {
          slack: {
            channel,
            botToken,
            ...(slackSecret ? { signingSecret: slackSecret } : {}),
            ...(threads ? { threads } : {}),
          },
        }
      : { url }),
    ...(operators ? { operators } : {}),
    ...(events.length > 0 ? { events } : {}),
    ...(quietHours.length > 0 ? { quietHours } : {}),
    ...(kind === "generic" && headers.trim() ? { headers: parseHeaders(headers) } : {}),
    ...(kind === "generic" && bodyTemplate ? { bodyTemplate } : {}),
    ...(kind === "generic" && signingSecret ? { signingSecret } : {}),
    ...pace(values),
  };
}

function receiverDefinition(values: Values): WebhookDefinition {
  const { name, receiver, inputs, operators, events, quietHours } = values;
  return {
    name,
    kind: "generic",
    preset: { id: receiver, inputs: Object.fromEntries(Object.entries(inputs).filter(([, text]) => text !== "")) },
    events,
    ...(quietHours.length > 0 ? { quietHours } : {}),
    ...(operators ? { operators } : {}),
    ...pace(values),
  };
}

/** The edit of a webhook for a receiver: its secrets stay if nothing is typed, other inputs are sent as they are. */
function receiverEdit(values: Values, { enabled, preset, secretsProblem }: Webhook): WebhookEdit {
  const { name, inputs, operators, events, quietHours } = values;
  const open = Object.keys(preset?.inputs ?? {});
  return {
    name,
    enabled,
    operators,
    events,
    ...(quietHours.length > 0 ? { quietHours } : {}),
    preset: {
      inputs: Object.fromEntries(Object.entries(inputs).filter(([input, text]) => text !== "" || open.includes(input))),
    },
    ...(secretsProblem === undefined ? {} : { headers: {} }),
    ...pace(values),
  };
}

/** The edit of a webhook: secrets that were not typed stay as they are, unless they cannot be decrypted. */
export function editOf(values: Values, webhook: Webhook): WebhookEdit {
  if (webhook.preset) return receiverEdit(values, webhook);
  const { enabled, slack: before, secretsProblem } = webhook;
  const { name, kind, url, bot, slack, replaceHeaders, headers, bodyTemplate, signingSecret, operators } = values;
  const { channel, botToken, signingSecret: slackSecret, threads } = slack;
  const isBot = kind === "slack" && bot;
  const again = secretsProblem !== undefined;
  return {
    name,
    enabled,
    operators,
    events: values.events,
    ...(values.quietHours.length > 0 ? { quietHours: values.quietHours } : {}),
    ...(isBot && {
      slack: {
        channel,
        ...(botToken || again ? { botToken } : {}),
        ...(slackSecret || again ? { signingSecret: slackSecret } : {}),
        ...(threads !== (before?.threads ?? false) ? { threads } : {}),
      },
    }),
    // For a change from a bot to a URL, even an empty URL is sent, so that the API can say that it
    // is missing.
    ...(!isBot && (url || before || again) ? { url } : {}),
    ...((kind === "generic" && replaceHeaders) || again ? { headers: parseHeaders(headers) } : {}),
    ...((kind === "generic" && signingSecret) || again ? { signingSecret } : {}),
    bodyTemplate,
    ...pace(values),
  };
}

const names = {
  name: "Name",
  channel: "Channel",
  threads: "One thread for each issue",
  inputs: "Receiver",
  bodyTemplate: "Body",
  operators: "For operators",
  events: "Events",
  eventMaxAgeSeconds: "Maximum age of events",
  quietHours: "Quiet hours",
  timeoutSeconds: "Timeout",
  maxConcurrent: "Concurrent requests",
  ratePerSecond: "Messages per second",
  digestAbove: "Digest above",
} as const;

type Comparable = keyof typeof names;

/** An amount in words; a blank one means the default. */
function amountWords(text: string, words: (amount: number) => string, zero?: string): string {
  if (text.trim() === "") return "default";
  const amount = Number(text);
  if (Number.isNaN(amount)) return text;
  return amount === 0 && zero ? zero : words(amount);
}

/** The fields that can be compared, as people read them: secrets are never shown. */
function comparable(values: Values): Record<Comparable, string> {
  return {
    name: values.name,
    channel: values.bot ? values.slack.channel : "",
    threads: values.bot && values.slack.threads ? "yes" : "no",
    inputs: values.openInputs.map((name) => `${name}: ${values.inputs[name] || "–"}`).join("\n"),
    bodyTemplate: values.bodyTemplate || "default layout",
    operators: values.operators ? "yes" : "no",
    events: values.events.map((event) => eventWords[event]).join(", "),
    eventMaxAgeSeconds: amountWords(values.eventMaxAgeSeconds, period),
    quietHours: values.quietHours.map(hoursWords).join("; "),
    timeoutSeconds: amountWords(values.timeoutSeconds, period),
    maxConcurrent: amountWords(values.maxConcurrent, number),
    ratePerSecond: amountWords(values.ratePerSecond, String, "no limit"),
    digestAbove: amountWords(values.digestAbove, messagesWord, "never"),
  };
}

/** The fields in which the reader's version and the saved one differ, if both began with `base`. */
export function differences(base: Values, { theirs, mine }: Record<Side, Values>): Conflict<Comparable>[] {
  const [before, a, b] = [comparable(base), comparable(theirs), comparable(mine)];
  return (Object.keys(names) as Comparable[])
    .filter((field) => a[field] !== b[field])
    .map((field) => {
      const [said, own] = unlike(a[field] || "–", b[field] || "–");
      const changedBy = before[field] === a[field] ? "mine" : before[field] === b[field] ? "theirs" : "both";
      return { field, label: names[field], theirs: said, mine: own, changedBy };
    });
}

/** The inputs that are not secret. */
const openOf = ({ inputs, openInputs }: Values) =>
  Object.fromEntries(openInputs.map((name) => [name, inputs[name] ?? ""]));

/**
 * The values of `theirs`, except for the fields that are to be mine, and for secrets: those that
 * were typed here stay.
 */
export function merged({ theirs, mine }: Record<Side, Values>, fields: readonly Comparable[]): Values {
  const own = (field: Comparable) => (fields.includes(field) ? mine : theirs);
  return {
    ...mine,
    name: own("name").name,
    slack: { ...mine.slack, channel: own("channel").slack.channel, threads: own("threads").slack.threads },
    inputs: { ...mine.inputs, ...openOf(own("inputs")) },
    bodyTemplate: own("bodyTemplate").bodyTemplate,
    operators: own("operators").operators,
    events: own("events").events,
    eventMaxAgeSeconds: own("eventMaxAgeSeconds").eventMaxAgeSeconds,
    quietHours: own("quietHours").quietHours,
    timeoutSeconds: own("timeoutSeconds").timeoutSeconds,
    maxConcurrent: own("maxConcurrent").maxConcurrent,
    ratePerSecond: own("ratePerSecond").ratePerSecond,
    digestAbove: own("digestAbove").digestAbove,
  };
}
