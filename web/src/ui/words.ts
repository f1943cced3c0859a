/**
 * Numbers, counted nouns and lists in the form in which the pages write them. Only this file knows
 * the language's digits, plurals and conjunctions; {@link ./words.test.ts} checks that no other
 * file does.
 */

const language = "en";

const plain = new Intl.NumberFormat(language);
const rules = new Intl.PluralRules(language);

/** 1,234 */
export const number = (value: number): string => plain.format(value);

const fractions = new Map<number, Intl.NumberFormat>();

/** 1,234.5 with one decimal: as many decimals as requested, even if they are zeros. */
export function decimal(value: number, digits: number): string {
  const known = fractions.get(digits);
  const format =
    known ?? new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  if (!known) fractions.set(digits, format);
  return format.format(value);
}

/** The form of a word that goes with a number: plural(n, "matches", "match"). */
export const plural = (value: number, one: string, many: string): string =>
  rules.select(value) === "one" ? one : many;

/** "1 alert", "1,234 alerts"; an irregular plural is given. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${plural(value, one, many)}`;
}

export const alertsWord = (value: number): string => counted(value, "alert");
export const messagesWord = (value: number): string => counted(value, "message");

export const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

/** "Less than 1 s behind": a text on its own begins with a capital. */
export const sentenceCase = (text: string): string => text.charAt(0).toLocaleUpperCase(language) + text.slice(1);

/** "a", "a and b", "a, b and c" */
export function listed(words: readonly string[], last: "and" | "or" = "and"): string {
  if (words.length < 2) return words[0] ?? "";
  return `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
