import type { FireMode, GroupBy } from "../api/client";
import { severityMeaning } from "../ui/marks";

/** Fire modes by the words of the form. */
export const modes: { value: FireMode; label: string }[] = [
  { value: "PER_EXCHANGE", label: "Each exchange" },
  { value: "COUNT_IN_WINDOW", label: "A number of exchanges" },
  { value: "RATIO_IN_WINDOW", label: "A failure ratio" },
  { value: "DURATION_IN_WINDOW", label: "Slow exchanges" },
  { value: "ABSENT_IN_WINDOW", label: "Missing exchanges" },
];

/** Groups by the words of the form. */
export const groups: { value: GroupBy | ""; label: string }[] = [
  { value: "", label: "None" },
  { value: "ROUTE", label: "Route" },
  { value: "APPLICATION", label: "Application" },
  { value: "ENVIRONMENT", label: "Environment" },
  { value: "ERROR_TYPE", label: "Error type" },
  { value: "ATTRIBUTE", label: "Attribute value" },
];

export const severities = (["CRITICAL", "WARNING", "INFO"] as const).map((value) => ({
  value,
  label: severityMeaning[value].word,
}));

const statuses = [
  { value: "FAILED", label: "failed" },
  { value: "COMPLETED", label: "completed" },
];

/** The fields whose values the form offers as a choice. */
const choices: Record<string, readonly { value: string; label: string }[]> = {
  fireMode: modes,
  groupBy: groups,
  severity: severities,
  "filter.statuses": statuses,
};

/** The word of the form for a value of a field; the text itself, if people typed it. */
export function wordOf(field: string, value: string): string {
  return choices[field]?.find((choice) => choice.value === value)?.label ?? value;
}
