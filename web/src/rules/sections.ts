/** The parts of the page, and the part of each field. */
export const sections = [
  { name: "scope", title: "Scope", fields: ["scope"] },
  { name: "filter", title: "Filter", fields: ["filter"] },
  {
    name: "trigger",
    title: "Trigger",
    fields: [
      "fireMode",
      "threshold",
      "percent",
      "percentile",
      "durationMs",
      "minVolume",
      "windowSeconds",
      "shortWindowSeconds",
      "groupBy",
      "groupByAttribute",
      "expected",
      "learnDays",
      "calendar",
      "forDurationSeconds",
      "reNotifyMinutes",
      "notifyOnResolve",
      "resolution",
      "intervalSeconds",
      "lookBackSeconds",
    ],
  },
  {
    name: "message",
    title: "Message",
    fields: ["severity", "titleTemplate", "messageTemplate", "webhookIds", "useRoutingPolicy", "targets"],
  },
  { name: "details", title: "Details", fields: ["owner", "runbookUrl", "labels", "note"] },
  { name: "review", title: "Review", fields: ["enabled"] },
] as const;

/** How many fields of each section have errors, of the fields that the form knows. */
export function wrongIn(
  section: (typeof sections)[number],
  known: readonly string[],
  errorOf: (field: string) => string | undefined,
): number {
  const ours = known.filter((field) =>
    section.fields.some((own) => field === own || field.startsWith(`${own}.`) || field.startsWith(`${own}[`)),
  );
  return ours.filter((field) => errorOf(field) !== undefined).length;
}
