/** The filter of silences in the address. */
export interface SilencesSearch {
  show?: "past";
}

/** Parses an address that may have been typed: invalid parts are ignored and are no error. */
export function parseSilences(raw: Record<string, unknown>): SilencesSearch {
  return raw.show === "past" ? { show: "past" } : {};
}

/** The alert that a new silence is filled in from. */
export interface NewSilenceSearch {
  alert?: string;
}

export function parseNewSilence(raw: Record<string, unknown>): NewSilenceSearch {
  const { alert } = raw;
  return typeof alert === "string" && /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(alert) ? { alert } : {};
}
