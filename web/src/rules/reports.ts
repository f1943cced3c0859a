/** Reports that a field is wrong, with the code and the message of the API. */
export type Report = (field: string, code: string, message: string) => void;

export function text(
  report: Report,
  field: string,
  value: string | undefined,
  longest: number,
  required = false,
): void {
  if (required && !value) report(field, "required", "Must not be empty");
  else if (atMost(report, field, value, longest) && value?.includes("\0")) {
    report(field, "text", "Must be valid UTF-8 text without NUL");
  }
}

export function atMost(report: Report, field: string, value: string | undefined, longest: number): boolean {
  const fits = [...(value ?? "")].length <= longest;
  if (!fits) report(field, "out_of_range", `Must be at most ${longest} characters`);
  return fits;
}

export function list(
  report: Report,
  field: string,
  values: readonly string[],
  bound: { most: number; longest: number },
): void {
  bounded(report, field, values, bound.most);
  for (const [index, value] of values.entries()) text(report, `${field}[${index}]`, value, bound.longest, true);
}

export function bounded(report: Report, field: string, values: readonly unknown[], most: number): void {
  if (values.length > most) report(field, "out_of_range", `Must be at most ${most} entries`);
}

export function unique(report: Report, field: string, values: readonly string[]): void {
  if (new Set(values).size < values.length) report(field, "unique", "Must not contain the same entry twice");
}

export function oneOf(report: Report, field: string, value: string | undefined, known: readonly string[]): void {
  if (!known.includes(value ?? "")) report(field, "unknown_value", `Must be one of ${known.join(", ")}`);
}

export function between(report: Report, field: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined) return;
  if (value < least) report(field, "out_of_range", `Must be at least ${least}`);
  else if (value > most) report(field, "out_of_range", `Must be at most ${most}`);
}
