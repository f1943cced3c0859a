/**
 * Returns a function that runs `action` at once after a quiet time, and otherwise once more when
 * the gap after the previous run is over. So the result of that run is visible for at least as
 * long. Many calls in between count as one.
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
