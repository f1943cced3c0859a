/** How the address bar writes which silences are listed. */
export interface SilencesSearch {
  show?: "past";
}

/** Reads an address that anybody may have typed: what makes no sense is left out, not an error. */
export function parseSilences(raw: Record<string, unknown>): SilencesSearch {
  return raw.show === "past" ? { show: "past" } : {};
}

/** The alert of which a new silence is filled in. */
export interface NewSilenceSearch {
  alert?: string;
}

export function parseNewSilence(raw: Record<string, unknown>): NewSilenceSearch {
  const { alert } = raw;
  return typeof alert === "string" && /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(alert) ? { alert } : {};
}
