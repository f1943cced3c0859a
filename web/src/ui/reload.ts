const key = "tocsin.reloaded";
const restMs = 5 * 60_000;

/**
 * Reloads the page, unless that was done within the last five minutes: then it did not help, and
 * the reader decides. Returns false if it does not reload, which includes browsers that store
 * nothing.
 */
export function reloadByItself(now = Date.now()): boolean {
  try {
    const last = Number(sessionStorage.getItem(key) ?? Number.NEGATIVE_INFINITY);
    // A clock that was set back makes the pause longer, but it ends with the tab at the latest.
    if (now - last < restMs) return false;
    sessionStorage.setItem(key, String(now));
  } catch {
    return false;
  }
  globalThis.location.reload();
  return true;
}
