import type { AlertFilter } from "../api/alerts";
import { exactTime } from "../ui/time";
import { spans } from "./filter";

interface Chip {
  part: string;
  text: string;
  /** The filter without it. */
  empty: Partial<AlertFilter>;
}

/** The parts of a filter that no menu shows, each with how to remove it. */
export function chips(filter: AlertFilter): readonly Chip[] {
  const { route, signature, environment, executionId, correlationId, attribute, hours, from, to, perExchange } = filter;
  const { assignee, snoozed } = filter;
  const all: (Chip | false)[] = [
    route.length > 0 && { part: "route", text: route.join(", ") || "No route", empty: { route: [] } },
    signature.length > 0 && { part: "error", text: signature.join(", ") || "No error", empty: { signature: [] } },
    environment.length > 0 && { part: "environment", text: environment.join(", "), empty: { environment: [] } },
    hours > 0 && {
      part: "hours",
      text: spans.find((span) => span.hours === hours)?.label ?? `Last ${hours} h`,
      empty: { hours: 0 },
    },
    from !== "" && { part: "from", text: `From ${exactTime(from)}`, empty: { from: "" } },
    to !== "" && { part: "to", text: `To ${exactTime(to)}`, empty: { to: "" } },
    executionId !== "" && { part: "execution", text: `Execution ${executionId}`, empty: { executionId: "" } },
    correlationId !== "" && { part: "correlation", text: `Correlation ${correlationId}`, empty: { correlationId: "" } },
    attribute.length > 0 && { part: "attribute", text: attribute.join(", "), empty: { attribute: [] } },
    assignee.length > 0 && {
      part: "assignee",
      text: assignee.map((name) => (name ? `Assigned to ${name}` : "Unassigned")).join(", "),
      empty: { assignee: [] },
    },
    snoozed !== "any" && {
      part: "snoozed",
      text: snoozed === "yes" ? "Snoozed" : "Not snoozed",
      empty: { snoozed: "any" },
    },
    perExchange && { part: "per", text: "Single exchanges", empty: { perExchange: false } },
  ];
  return all.filter((chip) => chip !== false);
}
