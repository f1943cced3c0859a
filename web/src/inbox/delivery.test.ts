import { expect, test } from "vitest";
import { isUndelivered } from "../api/alerts";
import type { DeliverySummary } from "../api/client";
import { ago, exactTime } from "../ui/time";
import { deliveryWords } from "./delivery";

const now = Date.parse("2026-11-21T10:00:00Z");
const nextAttemptAt = "2026-11-21T10:00:48Z";

test.each([
  [{ total: 0, delivered: 0, retrying: 0, failed: 0, suppressed: 0, discarded: 0 }, undefined],
  [
    { total: 1, delivered: 1, retrying: 0, failed: 0, suppressed: 0, discarded: 0 },
    ["delivered", "1/1", "1 of 1 message delivered"],
  ],
  [
    { total: 2, delivered: 1, retrying: 0, failed: 0, suppressed: 0, discarded: 0, quietUntil: "2026-11-25T06:00:00Z" },
    ["pending", "held", `1 of 2 messages delivered, held by quiet hours until ${exactTime("2026-11-25T06:00:00Z")}`],
  ],
  [
    { total: 2, delivered: 0, retrying: 0, failed: 0, suppressed: 0, discarded: 0 },
    ["pending", "0/2", "0 of 2 messages delivered"],
  ],
  [
    { total: 2, delivered: 1, retrying: 1, failed: 0, suppressed: 0, discarded: 0, nextAttemptAt },
    ["retrying", "retry in 48 s", "1 of 2 messages delivered, 1 to be retried"],
  ],
  [
    {
      total: 1,
      delivered: 0,
      retrying: 1,
      failed: 0,
      suppressed: 0,
      discarded: 0,
      nextAttemptAt: "2026-11-21T09:59:00Z",
    },
    ["retrying", "retry now", "0 of 1 message delivered, 1 to be retried"],
  ],
  [
    { total: 3, delivered: 1, retrying: 1, failed: 1, suppressed: 0, discarded: 0, nextAttemptAt },
    ["failed", "1/3", "1 of 3 failed permanently, 1 of 3 messages delivered"],
  ],
  [
    { total: 2, delivered: 1, retrying: 0, failed: 0, suppressed: 0, discarded: 1 },
    ["discarded", "1/2", "1 of 2 messages delivered, 1 discarded"],
  ],
  [
    { total: 1, delivered: 0, retrying: 0, failed: 0, suppressed: 0, discarded: 1 },
    ["discarded", "discarded", "The message was discarded"],
  ],
])("%j", (delivery: DeliverySummary, want) => {
  const words = deliveryWords(delivery, ago(delivery.nextAttemptAt ?? "", now));
  expect(words && [words.tone, words.short, words.long]).toEqual(want);
});

test.each([
  [{ total: 3, delivered: 1, retrying: 0, failed: 1, suppressed: 1, discarded: 0 }, false],
  [{ total: 2, delivered: 1, retrying: 0, failed: 0, suppressed: 0, discarded: 1 }, false],
  [{ total: 3, delivered: 1, retrying: 0, failed: 1, suppressed: 0, discarded: 0 }, true],
  [{ total: 2, delivered: 1, retrying: 1, failed: 0, suppressed: 0, discarded: 0 }, true],
])("%j is still to be delivered: %s", (delivery: DeliverySummary, want) => {
  expect(isUndelivered({ delivery })).toBe(want);
});
