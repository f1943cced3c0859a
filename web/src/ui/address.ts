/**
 * The address bar contains plain text: `?severity=critical&severity=warning&q=timeout`. A name that
 * occurs once is a text, a name that occurs more often a list. The reader decides what it may be.
 */
export function parseAddress(text: string): Record<string, unknown> {
  const search: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const before = search[name];
    search[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  return search;
}

export function writeAddress(search: Record<string, unknown>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== "") params.append(name, String(item));
    }
  }
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}
