/**
 * Whether a rule can ask for a stored value of an attribute. A value that was cut, or that contained other bytes than
 * text, is not the value of the exchange: no exchange would equal it.
 */
export const canBeAskedFor = (value: string) =>
  !value.includes("\uFFFD") && !value.endsWith("…") && [...value].length <= 1000;
