/**
 * Returns a function that runs `action` at once when it has been quiet, and otherwise once more as soon as both the gap
 * and the run before are over. Many calls in between are one.
 */
export function throttle(action: () => Promise<unknown>, gapMs: () => number): () => void {
  let busy = false;
  let wanted = false;

  const run = async () => {
    busy = true;
    wanted = false;
    const gap = new Promise((resolve) => setTimeout(resolve, gapMs()));
    await Promise.allSettled([action(), gap]);
    busy = false;
    if (wanted) void run();
  };

  return () => {
    wanted = true;
    if (!busy) void run();
  };
}
