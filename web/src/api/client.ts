import createClient from "openapi-fetch";
import { ApiError, unreachable } from "./errors";
import type { components, paths } from "./schema.gen";

/**
 * The only way to Tocsin's API, with types from its document. Its absolute address also works
 * outside a page, in tests.
 */
export const client = createClient<paths>({
  baseUrl: new URL("/api/v1", globalThis.location.origin).href,
  fetch: (request) => globalThis.fetch(request),
});

const signedOut = new EventTarget();

/** Calls back whenever the API says that the reader is not signed in any more. Returns a function that ends this. */
export function onSignedOut(call: () => void): () => void {
  signedOut.addEventListener("signed-out", call);
  return () => signedOut.removeEventListener("signed-out", call);
}

let sessions = 0;

/** Notes that a person has signed in: answers to requests from before do not end their session. */
export function beginSession(): void {
  sessions += 1;
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/**
 * Resolves to the body of a successful answer. Anything else is an {@link ApiError}: the error of
 * the API, or that it could not be reached. An abort is passed on unchanged, so that the query
 * cache recognises it.
 */
export async function body<T>(call: Promise<Answer<T>>): Promise<T> {
  const asked = sessions;
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw unreachable(cause);
  }
  if (answer.response.ok) return answer.data as T;
  if (answer.response.status === 401 && asked === sessions) signedOut.dispatchEvent(new Event("signed-out"));
  throw new ApiError(answer.response.status, answer.error);
}

type Schemas = components["schemas"];
export type Alert = Schemas["Alert"];
export type AlertPage = Schemas["AlertPage"];
export type AlertGroup = Schemas["AlertGroup"];
export type AlertGroupPage = Schemas["AlertGroupPage"];
export type AlertSelection = Schemas["AlertSelection"];
export type BulkResult = Schemas["BulkResult"];
export type UndoResult = Schemas["UndoResult"];
export type DeliverySummary = Schemas["DeliverySummary"];
export type AlertState = Schemas["AlertState"];
export type AlertActivity = Schemas["AlertActivity"];
export type AlertsEvent = Schemas["AlertsEvent"];
export type AlertCounts = Schemas["AlertCounts"];
export type Issue = Schemas["Issue"];
export type IssueNote = Schemas["IssueNote"];
export type View = Schemas["View"];
export type ViewDefinition = Schemas["ViewDefinition"];
export type WindowCount = Schemas["WindowCount"];
export type FireMode = Schemas["FireMode"];
export type GroupBy = Schemas["GroupBy"];
export type Severity = Schemas["Severity"];
export type Exchange = Schemas["Exchange"];
export type ExplainVerdict = Schemas["ExplainVerdict"];
export type RuleExplanation = Schemas["RuleExplanation"];
export type Notification = Schemas["Notification"];
export type NotificationPage = Schemas["NotificationPage"];
export type MessageBody = Schemas["MessageBody"];
export type NotificationCounts = Schemas["NotificationCounts"];
export type WebhookActivity = Schemas["WebhookActivity"];
export type NotificationReason = Schemas["NotificationReason"];
export type NotificationStatus = Schemas["NotificationStatus"];
export type Attempt = Schemas["Attempt"];
export type Rule = Schemas["Rule"];
export type RuleDefinition = Schemas["RuleDefinition"];
export type RuleChange = Schemas["RuleChange"];
export type RuleDifference = Schemas["RuleDifference"];
export type ChangedAlerts = Schemas["ChangedAlerts"];
export type RuleReplay = Schemas["RuleReplay"];
export type RuleReplayMessages = Schemas["RuleReplayMessages"];
export type RuleReplayPreview = Schemas["RuleReplayPreview"];
export type RuleReplayRange = Schemas["RuleReplayRange"];
export type RulePreview = Schemas["RulePreview"];
export type TemplatePreview = Schemas["TemplatePreview"];
export type TemplatePreviewRequest = Schemas["TemplatePreviewRequest"];
export type ExchangeRef = Schemas["ExchangeRef"];
export type FacetValue = Schemas["FacetValue"];
export type TestResult = Schemas["TestResult"];
export type Webhook = Schemas["Webhook"];
export type WebhookDefinition = Schemas["WebhookDefinition"];
export type WebhookEdit = Schemas["WebhookEdit"];
export type WebhookEvent = Schemas["WebhookEvent"];
export type Receiver = Schemas["Receiver"];
export type ReceiverInput = Schemas["ReceiverInput"];
export type ReceiverPreview = Schemas["ReceiverPreview"];
export type ReceiverRequest = Schemas["ReceiverRequest"];
export type WebhookHealth = Schemas["WebhookHealth"];
export type RotatedSecret = Schemas["RotatedSecret"];
export type Silence = Schemas["Silence"];
export type SilenceDefinition = Schemas["SilenceDefinition"];
export type SilencePreview = Schemas["SilencePreviewAnswer"];
export type SilencePreviewRequest = Schemas["SilencePreviewRequest"];
export type SilenceState = Schemas["SilenceState"];
export type RoutingPolicy = Schemas["RoutingPolicy"];
export type RoutingPolicyDefinition = Schemas["RoutingPolicyDefinition"];
export type EscalationStep = Schemas["EscalationStep"];
export type RoutingRoute = Schemas["RoutingRoute"];
export type RoutingTestRequest = Schemas["RoutingTestRequest"];
export type RoutingTestAnswer = Schemas["RoutingTestAnswer"];
export type AlertRouting = Schemas["AlertRouting"];
export type AlertMatch = Schemas["AlertMatch"];
export type AttributeMatch = Schemas["AttributeMatch"];
export type Recurrence = Schemas["SilenceRecurrence"];
export type Reconciliation = Schemas["Reconciliation"];
export type Replica = Schemas["Replica"];
export type SystemStep = Schemas["SystemStep"];
export type PartitionStatus = Schemas["PartitionStatus"];
export type Status = Schemas["Status"];
export type FieldError = Schemas["FieldError"];
export type Problem = Schemas["Problem"];
