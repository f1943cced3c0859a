import { expect, test } from "vitest";
import type { Attempt, Notification } from "../api/client";
import { attemptSign, attemptsWord, readable, retryWord, steps, subject, verdictsWord } from "./words";

test.each([
  [{ reason: "FIRED" }, "Alert"],
  [{ reason: "REMINDER", digestId: "d" }, "Reminder, in a digest"],
  [{ reason: "DIGEST", digestSize: 1234 }, "Digest of 1,234"],
  [{ reason: "WEBHOOK_OFF" }, "Webhook is disabled"],
  [{ reason: "SOMETHING_ELSE" }, "SOMETHING_ELSE"],
])("%j tells: %s", (notification, want) => {
  expect(subject(notification as Notification)).toBe(want);
});

test("an outcome that nobody knows is neither good nor bad", () => {
  const signs = (["DELIVERED", "RETRY", "GONE", "UNDER_WAY", "UNKNOWN"] as const).map((v) => attemptSign(v).sign);
  expect(signs.join("")).toBe("✓✗✗…?");
  expect(attemptSign("UNKNOWN").tone).toBe("open");
});

test("attempts are described in words", () => {
  expect(verdictsWord(["UNKNOWN", "RETRY", "DELIVERED"])).toBe("unknown, not delivered, delivered");
});

test("attempts are counted", () => {
  expect([0, 1, 6].map((count) => attemptsWord(count, false))).toEqual(["No attempts yet", "1 attempt", "6 attempts"]);
});

test("what is due already is not retried", () => {
  expect(retryWord({ status: "PENDING" })).toBeUndefined();
  expect(retryWord({ status: "PENDING", quietUntil: "2026-11-25T06:00:00Z" })).toBe("Send now");
  expect(retryWord({ status: "EXHAUSTED" })).toBe("Send again");
});

test("retries are between the attempts, by time and not by text", () => {
  const attempt = (number: number, startedAt: string) => ({ number, startedAt, verdict: "RETRY" }) as Attempt;
  const line = steps({
    attempts: [attempt(1, "2026-11-21T10:00:00Z"), attempt(2, "2026-11-21T10:00:05Z")],
    retries: [{ at: "2026-11-21T10:00:04.5Z", by: "Ada" }],
  });
  expect(line.map((step) => (step.kind === "retry" ? step.by : step.attempt.number))).toEqual([1, "Ada", 2]);
});

test("a body of JSON is spread over lines, and any other one is left alone", () => {
  expect(readable('{"a":{"b":1}}')).toBe('{\n  "a": {\n    "b": 1\n  }\n}');
  expect(readable("{cut off")).toBe("{cut off");
});
