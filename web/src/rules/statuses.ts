import type { RuleDefinition } from "../api/client";

/** The statuses that match if a rule has none: durations and missing exchanges are about all exchanges. */
export const usualStatuses = (mode?: RuleDefinition["fireMode"]): ("COMPLETED" | "FAILED")[] =>
  mode === "DURATION_IN_WINDOW" || mode === "ABSENT_IN_WINDOW" ? ["COMPLETED", "FAILED"] : ["FAILED"];
