/**
 * Returns a function that runs `action` at once when it has been quiet, and otherwise once more when a gap after the run
 * before is over: how that ended is seen for at least so long. Many calls in between are one.
 */
export function throttle(action: () => Promise<unknown>, gapMs: () => number): () => void {
  let busy = false;
  let wanted = false;

  const run = async () => {
    busy = true;
    wanted = false;
    await Promise.allSettled([action()]);
    await new Promise((resolve) => setTimeout(resolve, gapMs()));
    busy = false;
    if (wanted) void run();
  };

  return () => {
    wanted = true;
    if (!busy) void run();
  };
}
