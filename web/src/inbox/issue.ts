import type { Issue } from "../api/client";
import type { IssueKey } from "../api/issues";
import { counted } from "../ui/words";
import { errorOf, signatureOf } from "./filter";

/** The names of an issue's parts in the address. */
export interface IssueSearch {
  app?: string;
  route?: string;
  error?: string;
}

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/** Parses an address that may have been typed. */
export function parseIssueSearch(raw: Record<string, unknown>): IssueSearch {
  const [app, route, error] = [text(raw.app), text(raw.route), text(raw.error)];
  return { ...(app ? { app } : {}), ...(route ? { route } : {}), ...(error ? { error } : {}) };
}

export function issueSearch({ application, route, signature }: IssueKey): IssueSearch {
  return parseIssueSearch({ app: application, route, error: errorOf(signature) });
}

/** The issue in an address. Without an error there is none; application and route may be empty. */
export function issueKey({ app = "", route = "", error }: IssueSearch): IssueKey | undefined {
  return error === undefined ? undefined : { application: app, route, signature: signatureOf(error) };
}

/** How many alerts are in each state, leaving out the states without any: "3 firing, 1 resolved". */
export function statesOf({ firing, acknowledged, resolved }: Issue): string {
  const parts = [
    [firing, "firing"],
    [acknowledged, "acknowledged"],
    [resolved, "resolved"],
  ] as const;
  return parts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${counted(count, word, word)}`)
    .join(", ");
}
