import type { NotificationCounts, NotificationStatus } from "../api/client";
import { mostCounted } from "../api/notifications";
import { number } from "../ui/words";
import { type DeliverySearch, parseSearch, statuses } from "./filter";

const counted: Record<NotificationStatus, Exclude<keyof NotificationCounts, "complete">> = {
  PENDING: "pending",
  RETRYING: "retrying",
  DELIVERED: "delivered",
  FAILED: "failed",
  EXHAUSTED: "exhausted",
  DISCARDED: "discarded",
  SUPPRESSED: "suppressed",
};

/** What is counted among the newest messages only. */
const amongNewest: readonly NotificationStatus[] = ["DELIVERED", "DISCARDED", "SUPPRESSED"];

/**
 * How many messages have a status: "12"; "10,000+" or "12+" if there may be more. "" while it is unknown, or if the counts
 * are of another list.
 */
export function countOf(
  status: NotificationStatus,
  counts: NotificationCounts | undefined,
  { rule, alert, digest, silence, digestsOf, q }: DeliverySearch,
): string {
  if (!counts || rule || alert || digest || silence || digestsOf || q) return "";
  const count = counts[counted[status]];
  if (!counts.complete && amongNewest.includes(status) && count < mostCounted)
    return count > 0 ? `${number(count)}+` : "";
  return count >= mostCounted ? `${number(mostCounted)}+` : number(count);
}

/**
 * The tabs: all, and each status. A tab that is not needed, because it certainly has no message and
 * is not selected, is left out.
 */
export function tabsOf(search: DeliverySearch, counts: NotificationCounts | undefined) {
  const chosen = search.status ?? [];
  const usual: readonly NotificationStatus[] = ["PENDING", "RETRYING", "DELIVERED", "FAILED", "EXHAUSTED"];
  return statuses
    .filter((status) => usual.includes(status) || isChosen(chosen, status) || mayHave(status, counts))
    .map((status) => ({
      status,
      count: countOf(status, counts, search),
      current: isChosen(chosen, status),
      search: parseSearch({ ...search, status: status.toLowerCase() }),
    }));
}

const mayHave = (status: NotificationStatus, counts: NotificationCounts | undefined) =>
  counts !== undefined && (counts[counted[status]] > 0 || !counts.complete);

const isChosen = (chosen: readonly string[], status: NotificationStatus) => chosen.includes(status.toLowerCase());
