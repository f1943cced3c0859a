import { expect, test } from "vitest";
import type { RulePreview } from "../api/client";
import { chartWords, loads, shortfall, summary, volumeWarning } from "./previewText";

const preview: RulePreview = {
  from: "2026-11-20T14:00:00Z",
  to: "2026-11-21T14:00:00Z",
  coveredFrom: "2026-11-20T14:00:00Z",
  truncated: false,
  scanned: 50_000,
  alerts: 412,
  bucketSeconds: 1440,
  buckets: [0, 400, 12],
  shares: [],
  newest: [],
  webhooks: [
    {
      webhookId: "w1",
      webhookName: "#ops",
      notifications: 412,
      busiestMinute: 94,
      ratePerSecond: 1,
      exceedsRate: true,
    },
    {
      webhookId: "w2",
      webhookName: "desk",
      notifications: 824,
      busiestMinute: 188,
      ratePerSecond: 0,
      exceedsRate: false,
    },
  ],
};

/** The end of the preview. */
const now = new Date("2026-11-21T14:00:00Z").getTime();

test("what would have happened is one sentence, and one for each webhook", () => {
  expect(summary(preview)).toBe("In the last 24 h, this would have raised 412 alerts: 1,236 messages.");
  expect(loads(preview).map(({ text, exceeds }) => [text, exceeds])).toEqual([
    ["#ops: 412 messages, at most 94 a minute; it takes 60, so some would have waited.", true],
    ["desk: 824 messages, at most 188 a minute.", false],
  ]);
  expect(shortfall(preview, now)).toBe("");
  expect(chartWords(preview, now)).toMatch(
    /^Alerts over time: peak of 400 between \d+ Nov \d\d:\d\d and \d+ Nov \d\d:\d\d\.$/,
  );
});

test("nothing, one, and too many are described as such", () => {
  const none = { ...preview, alerts: 0, buckets: [0, 0], webhooks: [] };
  expect(summary({ ...none, from: "2026-11-21T13:00:00Z" })).toBe(
    "In the last hour, this would have raised no alerts.",
  );
  expect(chartWords(none, now)).toBe("Alerts over time: none.");
  expect(summary({ ...preview, alerts: 1, webhooks: [], from: "2026-11-14T14:00:00Z" })).toBe(
    "In the last 7 days, this would have raised 1 alert.",
  );
  const cut = { ...preview, truncated: true };
  expect(summary(cut)).toContain("at least 412 alerts");
  expect(shortfall(cut, now)).toContain("after 50,000 exchanges. It is complete only from");
});

test("times say which day they are of, but for those of today", () => {
  const hour = { ...preview, from: "2026-11-21T13:00:00Z", bucketSeconds: 60, truncated: true };
  const soon = Date.parse("2026-11-21T13:05:00Z");
  expect(chartWords(hour, soon)).toMatch(/ between \d\d:\d\d and \d\d:\d\d\.$/);
  expect(shortfall({ ...hour, coveredFrom: "2026-11-21T13:02:07Z" }, soon)).toMatch(/ from \d\d:\d\d:07 on\.$/);
  const week = { ...preview, from: "2026-11-14T14:00:00Z", bucketSeconds: 86_400, truncated: true };
  expect(chartWords(week, now)).toMatch(/ between \d+ Nov \d\d:\d\d and \d+ Nov \d\d:\d\d\.$/);
  expect(shortfall({ ...week, coveredFrom: "2026-11-18T12:02:07Z" }, now)).toMatch(/ from \d+ Nov \d\d:\d\d:07 on\.$/);
});

test.each([
  ["few are no trouble", { alerts: 499 }, ""],
  ["many in a day", { alerts: 1200 }, /^That is about 1,200 alerts a day\./],
  ["many in a week are few a day", { alerts: 2800, from: "2026-11-14T14:00:00Z" }, ""],
  ["a stormy hour", { alerts: 40, from: "2026-11-21T13:00:00Z" }, ""],
])("the volume is warned of: %s", (_, change, want) => {
  expect(volumeWarning({ ...preview, ...change })).toMatch(want);
});
