import type { WebhookActivity } from "../api/client";
import { decimal, sum } from "../ui/words";

/**
 * The attempts of the last 24 hours: how many, and the percentage that the receiver accepted;
 * undefined if there were none.
 */
export function rateOf({ buckets }: Pick<WebhookActivity, "buckets">): {
  attempts: number;
  percent: string | undefined;
} {
  const delivered = sum(buckets.map((bucket) => bucket.delivered));
  const attempts = delivered + sum(buckets.map((bucket) => bucket.failed));
  return { attempts, percent: attempts === 0 ? undefined : percentOf(delivered, attempts) };
}

/** Less than the whole is never shown as 100%. */
function percentOf(part: number, whole: number): string {
  if (part === whole) return "100%";
  return `${decimal(Math.floor((part / whole) * 1000) / 10, 1)}%`;
}
