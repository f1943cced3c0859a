import type { AuditEntry, AuditFilter } from "../api/access";
import { differencesOf } from "../ui/difference";
import { exactTime } from "../ui/time";
import { number } from "../ui/words";

/** The names of the filter's parts in the address. */
export interface AuditSearch {
  about?: string;
  by?: string;
  id?: string;
}

const longest = 300;

/** Parses an address that may have been typed: invalid parts are ignored. */
export function parseAuditSearch(raw: Record<string, unknown>): AuditSearch {
  const search: AuditSearch = {};
  for (const name of ["about", "by", "id"] as const) {
    const value = raw[name];
    if (typeof value === "string" && value !== "") search[name] = value.slice(0, longest);
  }
  return search;
}

export function toAuditFilter({ about, by, id }: AuditSearch): AuditFilter {
  return { ...(about ? { objectKind: about } : {}), ...(by ? { actor: by } : {}), ...(id ? { objectId: id } : {}) };
}

const verbs: Record<string, string> = {
  create: "created",
  update: "changed",
  delete: "deleted",
  bind: "added a webhook to",
  unbind: "removed a webhook from",
};

/** Actions that did not change one named object. */
const requests: Record<string, string> = {
  createSession: "signed in",
  redeemLink: "signed in with a link",
  deleteSession: "signed out",
  changePassword: "set their password",
  setUserPassword: "set a user's password",
  createUserLink: "created a sign-in link for a user",
  acknowledgeAlert: "acknowledged an alert",
  acknowledgeAlerts: "acknowledged alerts",
  resolveAlert: "resolved an alert",
  assignAlert: "assigned an alert",
  assignAlerts: "assigned alerts",
  snoozeAlert: "snoozed an alert",
  unsnoozeAlert: "ended the snooze of an alert",
  resolveAlerts: "resolved alerts",
  undoAlertAction: "undid an action on alerts",
  slackInteraction: "pressed a button in Slack",
  retryNotification: "sent a message again",
  retryNotifications: "sent messages again",
  discardNotification: "discarded a message",
  discardNotifications: "discarded messages",
  retryRule: "retried the evaluation of a rule",
  applyRules: "applied a file of rules",
  "tocsin users": "was run on the server",
};

/** Actions on alerts, by the resulting state; an action on many alerts is one entry. */
const alertVerbs: Record<string, string> = {
  ACKNOWLEDGED: "acknowledged",
  RESOLVED: "resolved",
  FIRING: "restored",
  PENDING: "restored",
};

/** The end of a replay, by its state. */
const replayVerbs: Record<string, string> = {
  DONE: "finished",
  CANCELLED: "cancelled",
  STOPPED: "stopped",
};

interface AlertsAfter {
  state?: string;
  /** Who an alert was assigned to; null means nobody. */
  assignee?: string | null;
  /** Until when an alert was snoozed; null means that the snooze was cancelled. */
  snoozedUntil?: string | null;
  /** The number of alerts, and some of them; neither for a single alert. */
  alerts?: number;
  ids?: string[];
}

/** The action, in words that follow the actor's name. */
export function deed(entry: AuditEntry): string {
  const { action, operation = "", objectKind, objectName } = entry;
  const { state = "", alerts = 1, assignee, snoozedUntil } = (entry.after ?? {}) as AlertsAfter;
  const which = alerts > 1 ? `${number(alerts)} alerts` : `alert “${objectName ?? ""}”`;
  if (objectKind === "alert" && action === "update" && alertVerbs[state]) {
    return `${alertVerbs[state]} ${which}`;
  }
  if (objectKind === "alert" && action === "update" && assignee !== undefined) {
    return assignee === null ? `unassigned ${which}` : `assigned ${which} to ${assignee}`;
  }
  if (objectKind === "alert" && action === "update" && snoozedUntil !== undefined) {
    return `${snoozedUntil === null ? "ended the snooze of" : "snoozed"} ${which}`;
  }
  if (objectKind === "note") {
    const { rule_id: rule } = (entry.after ?? entry.before ?? {}) as { rule_id?: string | null };
    const on = rule ? `rule “${objectName ?? ""}”` : objectName ? `issue “${objectName}”` : "an issue";
    return `${action === "delete" ? "deleted a note from" : "added a note to"} ${on}`;
  }
  if (operation === "endSilence" && action === "update") return `ended silence “${objectName ?? ""}”`;
  if (objectKind === "teams") return "changed the teams";
  if (objectKind === "routing") return "changed the routing policy";
  if (objectKind === "replay") {
    const { state: became } = (entry.after ?? {}) as AlertsAfter;
    const which = `a replay of the rule “${objectName ?? ""}”`;
    if (action === "update" && became === "FAILED") return `reported that ${which} failed`;
    return `${action === "create" ? "started" : (replayVerbs[became ?? ""] ?? verbs[action])} ${which}`;
  }
  const request = action === "request" ? requests[operation] : undefined;
  if (request) return request;
  const name = objectName ? ` “${objectName}”` : "";
  return `${verbs[action] ?? `called ${operation || action} on`} ${objectKind}${name}`;
}

/** Each changed field, as a line. For a created or deleted object only its name. */
export function changes(entry: AuditEntry): string[] {
  if (entry.action !== "update") return [];
  const before = (entry.before ?? {}) as Record<string, unknown>;
  const { ids, alerts, ...after } = (entry.after ?? {}) as AlertsAfter & Record<string, unknown>;
  // A secret that was changed looks the same as before.
  const same = Object.keys(before).filter((key) => key in after && before[key] === after[key]);
  const masked = same.map((key) => `${fieldWords([key])}: ${shown(before[key])} → ${shown(after[key])}`);
  const lines = differencesOf(before, after).map(({ path, was, is, added, removed }) => {
    const name = fieldWords(path);
    if (!added || !removed) return `${name}: ${shown(was)} → ${shown(is)}`;
    const parts = [...removed.map((word) => `− ${shown(word)}`), ...added.map((word) => `+ ${shown(word)}`)];
    return `${name}: ${parts.join(", ")}`;
  });
  lines.push(...masked);
  return ids ? [...lines, named(ids, alerts ?? ids.length)] : lines;
}

/** Groups of fields by which the database stores a rule, and which nobody else knows. */
const groups = new Set(["about", "measure"]);
/** Fields whose parts have names that people chose. */
const free = new Set(["labels", "attributes", "headers"]);

/** The name of a field, from its path in the database, in words. */
function fieldWords(path: readonly string[]): string {
  return path
    .filter((part, index) => index > 0 || path.length === 1 || !groups.has(part))
    .map((part, index, parts) => (free.has(parts[index - 1] ?? "") ? part : words(part)))
    .join(" · ");
}

const words = (name: string) =>
  name
    .replaceAll("_", " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();

const mostNamed = 3;

/** The first of many alerts by their ids, and how many more there are. */
function named(ids: readonly string[], all: number): string {
  const rest = all - Math.min(mostNamed, ids.length);
  return ids.slice(0, mostNamed).join(", ") + (rest > 0 ? ` and ${number(rest)} more` : "");
}

const longestShown = 120;

/** An instant in the form in which Postgres writes it in JSON. */
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:\d\d$/;

function shown(value: unknown): string {
  if (value === undefined || value === null || value === "") return "nothing";
  if (typeof value === "string" && instant.test(value)) return exactTime(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
}
