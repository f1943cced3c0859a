/** Numbers and counted nouns as the pages write them: the one place that knows English plurals and digit grouping. */

const plain = new Intl.NumberFormat("en");

/** 1,234 */
export const number = (value: number): string => plain.format(value);

/** "1 alert", "1,234 alerts"; an irregular plural is given. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export const alertsWord = (value: number): string => counted(value, "alert");
export const messagesWord = (value: number): string => counted(value, "message");

export const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

/** "a", "a and b", "a, b and c" */
export function listed(words: readonly string[], last: "and" | "or" = "and"): string {
  if (words.length < 2) return words[0] ?? "";
  return `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
