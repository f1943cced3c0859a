import type { components } from "./schema.gen";

type Problem = components["schemas"]["Problem"];
type FieldError = components["schemas"]["FieldError"];

/** Why a call failed. Status 0 means that there was no answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly fields: readonly FieldError[];
  readonly requestId: string | undefined;

  constructor(status: number, answer: unknown) {
    const problem = isProblem(answer) ? answer : undefined;
    super(problem?.detail ?? wording(status, problem?.title));
    this.name = "ApiError";
    this.status = status;
    this.code = problem?.code ?? (status === 0 ? "unreachable" : "internal");
    this.fields = problem?.errors ?? [];
    this.requestId = problem?.requestId;
  }
}

export function unreachable(cause: unknown): ApiError {
  const error = new ApiError(0, undefined);
  error.cause = cause;
  return error;
}

/** How to describe any error to people, with the remedy. The queries of a page are repeated without their help. */
export function explain(
  error: unknown,
  again = "This page tries again automatically.",
): { what: string; remedy: string } {
  if (!(error instanceof ApiError)) {
    return { what: error instanceof Error ? error.message : String(error), remedy: "Reload the page." };
  }
  const named = error.requestId ? ` The request ID in Tocsin's log is ${error.requestId}.` : "";
  switch (true) {
    case error.status === 0:
      return { what: error.message, remedy: "Check your connection, and whether Tocsin is running." };
    case error.status === 401:
      return { what: error.message, remedy: "Sign in again." };
    case error.status === 403:
      return { what: error.message, remedy: "Ask an administrator for a role that allows this." };
    // The URL contains an ID in the wrong format.
    case error.status === 400 && error.message.startsWith("Invalid format for parameter "):
      return { what: "Not found.", remedy: "Check the URL." };
    // The message says only that something is not valid.
    case error.fields.length > 0:
      return { what: inSentences(error.fields.map(fieldReason)), remedy: "" };
    case error.status === 404:
      return { what: error.message, remedy: "It may have been deleted. Check the URL." };
    case error.status === 412:
      // What follows the semicolon tells a program what to do.
      return {
        what: error.message.split("; ")[0] ?? "",
        remedy: "Reload the page, then make your change again.",
      };
    // An error of Tocsin itself that has a remedy names it after a semicolon.
    case error.status === 409 && !error.message.includes("; "):
      return { what: error.message, remedy: "Reload the page to see what has changed, then try again." };
    case error.status === 429 && !error.message.includes("; "):
      return { what: error.message, remedy: "Wait a minute, then try again." };
    case error.status === 503:
      return {
        what: error.message,
        remedy: `Tocsin is running, but a database is not available. ${again}`,
      };
    case error.status >= 500:
      return { what: error.message, remedy: `Try again.${named}` };
    default:
      return { what: error.message, remedy: "" };
  }
}

/** The same in one sentence, for a passing message about a person's action, which is not repeated automatically. */
export function reasonOf(error: unknown): string {
  const { what, remedy } = explain(error, "Try again in a moment.");
  if (remedy === "") return what;
  return `${sentence(what)} ${remedy}`;
}

const inSentences = (reasons: readonly string[]) =>
  reasons.map((reason, index) => (index < reasons.length - 1 ? sentence(reason) : reason)).join(" ");

const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);

/** What is wrong with a field, for a place that does not show the field. */
export const fieldReason = ({ field, message }: FieldError) => `${fieldWords(field)}: ${message}`;

/** A path of the API in words: `filter.errorTypes[1]` is "Filter, error types 2". */
function fieldWords(path: string): string {
  const words = path
    .replace(/\[(\d+)\]/g, (_, index) => ` ${Number(index) + 1}`)
    .replace(/([a-z\d])([A-Z])/g, (_, end, begin) => `${end} ${begin.toLowerCase()}`)
    .replaceAll(".", ", ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Whether there was no answer at all. */
export const isAway = (error: unknown): boolean => error instanceof ApiError && error.status === 0;

/** Whether Tocsin reports that one of its dependencies is not available. */
export const isLame = (error: unknown): boolean => error instanceof ApiError && error.status === 503;

/** Whether trying the same call again may help. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500;
}

function wording(status: number, title: string | undefined): string {
  if (status === 0) return "Tocsin cannot be reached.";
  if (status === 404) return "Not found.";
  // A proxy in front of Tocsin responds so in its place.
  if (!title && (status === 502 || status === 504)) return "Tocsin is not responding.";
  return title ? `The request failed: ${title}.` : `The request failed with status ${status}.`;
}

function isProblem(answer: unknown): answer is Problem {
  return typeof answer === "object" && answer !== null && "code" in answer && "status" in answer;
}
