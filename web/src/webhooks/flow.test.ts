import { expect, test } from "vitest";
import { rateOf } from "./flow";

const rate = (...buckets: [delivered: number, failed: number][]) =>
  rateOf({ buckets: buckets.map(([delivered, failed]) => ({ delivered, failed })) });

test.each([
  ["nothing was attempted", rate([0, 0]), { attempts: 0, percent: undefined }],
  ["all was delivered", rate([3, 0], [4, 0]), { attempts: 7, percent: "100%" }],
  ["one in many failed", rate([99_999, 1]), { attempts: 100_000, percent: "99.9%" }],
  ["all failed", rate([0, 5]), { attempts: 5, percent: "0.0%" }],
])("%s", (_, got, want) => {
  expect(got).toEqual(want);
});
