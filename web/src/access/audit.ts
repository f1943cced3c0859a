import type { AuditEntry } from "../api/access";

const verbs: Record<string, string> = {
  create: "created",
  update: "changed",
  delete: "deleted",
  bind: "bound a webhook to",
  unbind: "unbound a webhook from",
};

/** What was asked for and changed no one thing that is named. */
const requests: Record<string, string> = {
  createSession: "signed in",
  redeemLink: "signed in by a link",
  deleteSession: "signed out",
  changePassword: "set their password",
  setUserPassword: "set a user's password",
  createUserLink: "made a sign-in link for a user",
  acknowledgeAlert: "acknowledged an alert",
  acknowledgeAlerts: "acknowledged alerts",
  resolveAlert: "resolved an alert",
  resolveAlerts: "resolved alerts",
  undoAlertAction: "put alerts back as they were",
  slackInteraction: "pressed a button in Slack",
  retryNotification: "sent a message again",
  retryNotifications: "sent messages again",
  retryRule: "had a rule evaluated at once",
  applyRules: "applied a file of rules",
  "tocsin users": "was run on the server",
};

/** What was done, in words that follow the actor's name. */
export function deed(entry: AuditEntry): string {
  const { action, operation = "", objectKind, objectName } = entry;
  const request = action === "request" ? requests[operation] : undefined;
  if (request) return request;
  const name = objectName ? ` “${objectName}”` : "";
  return `${verbs[action] ?? `called ${operation || action} on`} ${objectKind}${name}`;
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
