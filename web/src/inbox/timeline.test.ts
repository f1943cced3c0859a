import { expect, test } from "vitest";
import type { Notification } from "../api/client";
import { anAlert } from "../test/world";
import { digestWord, exchangeText, type Happening, reasonWord, timeline, verdictWords } from "./timeline";

const at = (second: number) => `2026-11-21T10:00:${String(second).padStart(2, "0")}Z`;

function notification(change: Partial<Notification>): Notification {
  return {
    id: "n1",
    alertId: "a",
    ruleId: "r",
    webhookId: "w",
    webhookName: "#ops",
    reason: "FIRED",
    status: "DELIVERED",
    attemptCount: 1,
    createdAt: at(0),
    ...change,
  };
}

const kinds = (line: readonly Happening[]) => line.map((h) => h.kind);

test("deeds and deliveries share one line, oldest first", () => {
  const alert = { ...anAlert(0), firedAt: at(0), acknowledgedAt: at(5), acknowledgedBy: "ada", resolvedAt: at(9) };
  const delivered = notification({
    settledAt: at(7),
    attempts: [
      { number: 1, startedAt: at(1), verdict: "RETRY", finishedAt: at(2) },
      { number: 2, startedAt: at(6), verdict: "DELIVERED", finishedAt: at(7) },
    ],
  });
  expect(kinds(timeline(alert, [delivered]))).toEqual(["fired", "attempt", "acknowledged", "attempt", "resolved"]);
});

test("a snooze is shown where it was decided, after an acknowledgement", () => {
  const alert = { ...anAlert(0), firedAt: at(0), acknowledgedAt: at(5), acknowledgedBy: "ada" };
  const snoozed = { ...alert, snoozedAt: at(6), snoozedBy: "bo", snoozedUntil: "2026-11-21T14:00:00Z" };
  expect(kinds(timeline(snoozed, [notification({ status: "EXHAUSTED", settledAt: at(7), attempts: [] })]))).toEqual([
    "fired",
    "acknowledged",
    "snoozed",
    "settled",
  ]);
  expect(timeline(snoozed, [])[2]).toEqual({
    kind: "snoozed",
    at: at(6),
    by: "bo",
    until: "2026-11-21T14:00:00Z",
  });
  expect(kinds(timeline(alert, []))).toEqual(["fired", "acknowledged"]);
});

test("a refusal is shown by its attempt alone", () => {
  const alert = { ...anAlert(0), firedAt: at(0) };
  const refused = notification({
    status: "FAILED",
    settledAt: at(2),
    attempts: [{ number: 1, startedAt: at(1), finishedAt: at(2), verdict: "REFUSED" }],
  });
  expect(kinds(timeline(alert, [refused]))).toEqual(["fired", "attempt"]);
});

test("an end without a deciding attempt is shown; what is still to come is last", () => {
  const alert = { ...anAlert(0), firedAt: at(0) };
  const exhausted = notification({ id: "n1", status: "EXHAUSTED", settledAt: at(20), attempts: [] });
  // The dispatcher's clock may be behind the one that recorded when it fired.
  const retrying = notification({ id: "n2", status: "RETRYING", nextAttemptAt: "2026-11-21T09:59:59Z", attempts: [] });
  expect(kinds(timeline(alert, [exhausted, retrying]))).toEqual(["fired", "settled", "next"]);
});

test("an attempt without an end says that the message may have been sent", () => {
  expect(verdictWords({ number: 1, startedAt: at(1), verdict: "UNDER_WAY" }).word).toBe("In progress");
  const unknown = verdictWords({ number: 1, startedAt: at(1), verdict: "UNKNOWN" });
  expect(unknown.word).toBe("Unknown");
  expect(unknown.explanation).toContain("may have been sent");
});

test("request and response are shown as text, with masks", () => {
  const attempt = { number: 1, startedAt: at(1), verdict: "REFUSED" as const, response: "no" };
  expect(exchangeText(attempt)).toBe("");
  const request = {
    method: "POST",
    host: "hooks.example",
    headers: [
      { name: "Authorization", masked: true },
      { name: "Webhook-Id", value: "n1" },
    ],
    bodySha256: "ab",
    bodyBytes: 7,
  };
  const responseHead = {
    statusLine: "HTTP/1.1 400 Bad Request",
    headers: [{ name: "Server", value: "x" }],
    truncated: true,
  };
  expect(exchangeText({ ...attempt, request, responseHead })).toBe(
    "POST hooks.example\nAuthorization: (not stored)\nWebhook-Id: n1\n(body of 7 bytes, SHA-256 ab)\n\n" +
      "HTTP/1.1 400 Bad Request\nServer: x\n…\n\nno",
  );
});

test("reminders appear once, however many webhooks are notified", () => {
  const alert = { ...anAlert(0), firedAt: at(0), resolvedAt: at(30) };
  const reminder = (id: string, second: number) =>
    notification({
      id,
      reason: "REMINDER",
      createdAt: at(second),
      settledAt: at(second + 2),
      attempts: [{ number: 1, startedAt: at(second + 1), finishedAt: at(second + 2), verdict: "DELIVERED" }],
    });
  const end = notification({ id: "n9", reason: "RESOLVED", createdAt: at(30), nextAttemptAt: at(31) });
  expect(kinds(timeline(alert, [reminder("n1", 10), reminder("n2", 10), reminder("n3", 20), end]))).toEqual([
    "fired",
    "reminded",
    "attempt",
    "attempt",
    "reminded",
    "attempt",
    "resolved",
    "next",
  ]);
  expect(reasonWord(end)).toBe("end");
});

test("the end of a snooze appears once, however many webhooks are notified", () => {
  const ended = (id: string, second: number) => notification({ id, reason: "SNOOZE_ENDED", createdAt: at(second) });
  const alert = { ...anAlert(0), firedAt: at(0) };
  expect(kinds(timeline(alert, [ended("n1", 10), ended("n2", 10), ended("n3", 40)]))).toEqual([
    "fired",
    "woke",
    "woke",
  ]);
  expect(reasonWord(ended("n1", 10))).toBe("end of the snooze");
});

test("a pending alert has not fired", () => {
  expect(kinds(timeline({ ...anAlert(0), state: "PENDING" }, []))).toEqual(["reached"]);
});

test("what a digest tells says so", () => {
  expect(digestWord(notification({}))).toBe("");
  expect(digestWord(notification({ digestId: "d", digestSize: 5000 }))).toBe("in a digest of 5,000");
});
