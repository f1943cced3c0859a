import type { FieldError } from "./client";
import { ApiError, fieldReason, reasonOf } from "./errors";

export interface Placed {
  fields: Record<string, string>;
  rest: string[];
}

/**
 * Assigns errors to the fields of a form: `filter.statuses[0]` goes to `filter.statuses` if that is
 * the longest name that the form knows. Errors that fit no field are shown at the top of the form.
 */
export function placeFields(errors: readonly FieldError[], known: readonly string[]): Placed {
  const fields: Record<string, string> = {};
  const rest: string[] = [];
  for (const refused of errors) {
    const { field, message } = refused;
    const home = known
      .filter((name) => field === name || field.startsWith(`${name}.`) || field.startsWith(`${name}[`))
      .sort((a, b) => b.length - a.length)[0];
    if (home === undefined) rest.push(fieldReason(refused));
    else fields[home] = fields[home] === undefined ? message : `${fields[home]} ${message}`;
  }
  return { fields, rest };
}

/**
 * Assigns the API's errors to fields like {@link placeFields}. An error without a field is shown at
 * the top of the form.
 */
export function placeErrors(error: unknown, known: readonly string[]): Placed {
  if (!(error instanceof ApiError)) return { fields: {}, rest: [reasonOf(error)] };
  if (error.fields.length === 0) return { fields: {}, rest: [reasonOf(error)] };
  return placeFields(error.fields, known);
}
