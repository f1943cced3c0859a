import type { RuleChange } from "../api/client";
import { type Difference, differencesOf } from "../ui/difference";
import { listed } from "../ui/words";
import { readField } from "./conflict";

/** One line of a change: a field, and what it was and is, or what came to it and left it. */
export interface Line {
  label: string;
  was?: string;
  is?: string;
  added?: string;
  removed?: string;
}

const verbs: Record<string, string> = {
  create: "created the rule",
  update: "changed the rule",
  delete: "deleted the rule",
};

const requests: Record<string, string> = {
  retryRule: "retried the evaluation",
  testRule: "sent a test message",
  reconcileRule: "compared alerts with exchanges",
};

interface Binding {
  webhook?: string;
}

/** What was done, in words that follow the name of who did it. */
export function deedOf({ action, operation = "", before, after }: RuleChange): string {
  const webhook = ((after ?? before) as Binding | undefined)?.webhook ?? "";
  if (action === "bind") return `added the webhook “${webhook}”`;
  if (action === "unbind") return `removed the webhook “${webhook}”`;
  if (action === "update" && isOnly(after, "enabled")) {
    return (after as { enabled?: boolean }).enabled ? "enabled the rule" : "disabled the rule";
  }
  if (action === "request") return requests[operation] ?? `called ${operation}`;
  return verbs[action] ?? `${action} the rule`;
}

const isOnly = (row: object | undefined, field: string) =>
  row !== undefined && Object.keys(row).length === 1 && field in row;

/** Each field that an update changed. */
export function linesOf(change: RuleChange): Line[] {
  const { action, before = {}, after = {} } = change;
  if (action !== "update" || isOnly(after, "enabled")) return [];
  return differencesOf(before, after).map(lineOf);
}

function lineOf({ path, was, is, added, removed }: Difference): Line {
  const { label, read } = readField(path.join("."));
  if (!added || !removed) return { label, was: read(was), is: read(is) };
  return {
    label,
    ...(added.length > 0 ? { added: listed(added) } : {}),
    ...(removed.length > 0 ? { removed: listed(removed) } : {}),
  };
}
