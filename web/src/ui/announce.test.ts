import { expect, test } from "vitest";
import { announcement, quietMs } from "./announce";

test("only more firing alerts are news, and a storm is announced once until it has been quiet", () => {
  const first = announcement(undefined, 3, 0);
  expect(first.text).toBe("");
  const more = announcement(first.seen, 5, 1_000);
  expect(more.text).toBe("2 new alerts, 5 alerts firing");
  const storm = announcement(more.seen, 50, 2_000);
  expect(storm.text).toBe("");
  expect(announcement(storm.seen, 51, 1_000 + quietMs).text).toBe("46 new alerts, 51 alerts firing");
  const fewer = announcement(more.seen, 1, 3_000);
  expect(fewer.text).toBe("");
  expect(announcement(fewer.seen, 2, 1_000 + quietMs).text).toBe("1 new alert, 2 alerts firing");
});

test("what comes while it is quiet is announced when that is over", () => {
  const one = announcement({ firing: 0, at: Number.NEGATIVE_INFINITY }, 1, 0);
  const quiet = announcement(one.seen, 2, 10_000);
  expect(quiet).toMatchObject({ text: "", againMs: quietMs - 10_000 });
  expect(announcement(quiet.seen, 2, quietMs).text).toBe("1 new alert, 2 alerts firing");
});

test("a clock that is set back makes it quiet no longer than usual", () => {
  const one = announcement({ firing: 0, at: Number.NEGATIVE_INFINITY }, 1, 3_600_000);
  const quiet = announcement(one.seen, 2, 0);
  expect(quiet.againMs).toBe(quietMs);
  expect(announcement(quiet.seen, 2, quietMs).text).toBe("1 new alert, 2 alerts firing");
});
