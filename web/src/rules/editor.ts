import type { UseFormReturnType } from "@mantine/form";
import type { Values } from "./values";

/** What the sections of the page share: the form, and the error of a field, by its name in the API. */
export interface Editor {
  form: UseFormReturnType<Values>;
  errorOf: (field: string) => string | undefined;
}

/** `filter.attributes[0].key` as the form names it. */
export const pathOf = (field: string) => field.replace(/\[(\d+)\]/g, ".$1");

/** What an input needs to show a field. */
export function bound({ form, errorOf }: Editor, field: string, options?: { type: "checkbox" }) {
  return { ...form.getInputProps(pathOf(field), options), error: errorOf(field) };
}

type NumberField =
  | "threshold"
  | "percent"
  | "durationMs"
  | "minVolume"
  | "shortWindowSeconds"
  | "windowSeconds"
  | "learnDays"
  | "forDurationSeconds"
  | "reNotifyMinutes"
  | "intervalSeconds"
  | "lookBackSeconds"
  | "filter.minDurationMs"
  | "filter.maxDurationMs";

/** What an amount needs to show a number. */
export function amount(editor: Editor, field: NumberField) {
  const { value, onChange } = editor.form.getInputProps(field);
  return {
    value: value as number | undefined,
    error: editor.errorOf(field),
    onChange: (next: number | undefined) => onChange(next),
  };
}
