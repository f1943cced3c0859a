const key = "tocsin.reloaded";
const restMs = 5 * 60_000;

/**
 * Loads the page anew without being asked, unless that has been done within the last five minutes: then it did not help,
 * and the reader decides. False where it was not done, which is also where the browser keeps nothing.
 */
export function reloadByItself(now = Date.now()): boolean {
  try {
    const last = Number(sessionStorage.getItem(key) ?? Number.NEGATIVE_INFINITY);
    // A clock that was set back makes the rest longer, but not for ever: the tab's end is the end of it.
    if (now - last < restMs) return false;
    sessionStorage.setItem(key, String(now));
  } catch {
    return false;
  }
  globalThis.location.reload();
  return true;
}
