import type { AuditEntry } from "../api/access";

const verbs: Record<string, string> = {
  create: "created",
  update: "changed",
  delete: "deleted",
  bind: "bound a webhook to",
  unbind: "unbound a webhook from",
};

const requests: Record<string, string> = {
  createSession: "signed in",
  redeemLink: "signed in by a link",
  deleteSession: "signed out",
  changePassword: "set their password",
  createUserLink: "made a sign-in link for",
};

/** What was done, in words that follow the actor's name. */
export function deed(entry: AuditEntry): string {
  const special = entry.action === "request" ? requests[entry.operation ?? ""] : undefined;
  if (special && entry.objectKind === "session") return special;
  const verb = special ?? verbs[entry.action] ?? `called ${entry.operation ?? entry.action} on`;
  const name = entry.objectName ? ` “${entry.objectName}”` : "";
  return `${verb} ${entry.objectKind}${name}`;
}

/** Each field that changed, as a line. What was created or deleted is told by its name alone. */
export function changes(entry: AuditEntry): string[] {
  if (entry.action !== "update") return [];
  const before = (entry.before ?? {}) as Record<string, unknown>;
  const after = (entry.after ?? {}) as Record<string, unknown>;
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .sort()
    .map((key) => `${key}: ${shown(before[key])} → ${shown(after[key])}`);
}

const longest = 120;

function shown(value: unknown): string {
  if (value === undefined || value === null || value === "") return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}
