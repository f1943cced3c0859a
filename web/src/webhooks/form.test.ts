import { describe, expect, test } from "vitest";
import type { Webhook } from "../api/client";
import { blank, definition, differences, editOf, merged, parseHeaders, valuesOf } from "./form";

const webhook: Webhook = {
  id: "w1",
  version: 3,
  createdAt: "2026-11-21T10:00:00Z",
  updatedAt: "2026-11-21T10:00:00Z",
  name: "erp",
  kind: "generic",
  urlHost: "erp.example.com",
  headerNames: ["Authorization"],
  bodyTemplate: "",
  hasSigningSecret: true,
  enabled: false,
  operators: false,
  timeoutSeconds: 10,
  maxConcurrent: 8,
  ratePerSecond: 0,
  digestAbove: 0,
  events: ["RESOLVED", "ACKNOWLEDGED"],
  eventMaxAgeSeconds: 3600,
  health: { state: "off", consecutiveFailures: 0 },
};

test.each([
  ["", {}],
  ["Authorization: Bearer a:b\n\n X-Team : ops ", { Authorization: "Bearer a:b", "X-Team": "ops" }],
  ["nonsense", { nonsense: "" }],
])("the headers %j are read", (text, want) => {
  expect(parseHeaders(text)).toEqual(want);
});

describe("a definition", () => {
  test("has what was given, and leaves the rest to its defaults", () => {
    const values = {
      ...blank,
      kind: "generic" as const,
      name: "x",
      url: "https://x",
      headers: "A: b",
      digestAbove: "0",
    };
    expect(definition(values)).toEqual({
      name: "x",
      kind: "generic",
      url: "https://x",
      headers: { A: "b" },
      digestAbove: 0,
    });
  });

  test("of Slack has nothing of another kind", () => {
    const values = { ...blank, name: "x", url: "u", headers: "A: b", bodyTemplate: "{}", signingSecret: "s" };
    expect(definition(values)).toEqual({ name: "x", kind: "slack", url: "u" });
  });
});

describe("an edit", () => {
  const pace = { timeoutSeconds: 10, maxConcurrent: 8, ratePerSecond: 0, digestAbove: 0, eventMaxAgeSeconds: 3600 };
  const events = ["ACKNOWLEDGED", "RESOLVED"];
  const same = { name: "erp", enabled: false, operators: false, events, bodyTemplate: "", ...pace };

  test("that changes nothing leaves the secrets out, and the switch as it is", () => {
    expect(editOf(valuesOf(webhook), webhook)).toEqual(same);
  });

  test("takes new secrets, and headers only where they are to be replaced", () => {
    const values = { ...valuesOf(webhook), url: "https://new", headers: "A: b" };
    expect(editOf(values, webhook)).toEqual({ ...same, url: "https://new" });
    expect(editOf({ ...values, replaceHeaders: true }, webhook)).toMatchObject({ headers: { A: "b" } });
  });

  test("of one whose secrets cannot be decrypted gives all of them", () => {
    const sealed: Webhook = { ...webhook, headerNames: [], secretsProblem: "its key is missing" };
    const values = { ...valuesOf(sealed), url: "https://new" };
    expect(editOf(values, sealed)).toEqual({ ...same, url: "https://new", headers: {}, signingSecret: "" });
    const slack = { channel: "C1", hasBotToken: false, hasSigningSecret: false, interactionsPath: "/x" };
    const bot: Webhook = { ...sealed, kind: "slack", urlHost: "", slack };
    expect(
      editOf(
        { ...valuesOf(bot), slack: { channel: "C1", botToken: "xoxb-1", signingSecret: "", threads: false } },
        bot,
      ),
    ).toMatchObject({
      slack: { channel: "C1", botToken: "xoxb-1", signingSecret: "" },
    });
  });

  test("of a bot keeps its token unless there is a new one, and says where it becomes an incoming webhook", () => {
    const slack = { channel: "C1", hasBotToken: true, hasSigningSecret: true, interactionsPath: "/x" };
    const bot: Webhook = { ...webhook, kind: "slack", urlHost: "", slack };
    const values = valuesOf(bot);
    expect(editOf(values, bot)).toEqual({ ...same, slack: { channel: "C1" } });
    expect(editOf({ ...values, bot: false }, bot)).toEqual({ ...same, url: "" });
    const threaded = { ...values, slack: { ...values.slack, threads: true } };
    expect(editOf(threaded, bot)).toEqual({ ...same, slack: { channel: "C1", threads: true } });
    const already: Webhook = { ...bot, slack: { ...slack, threads: true } };
    expect(editOf(valuesOf(already), already)).toEqual({ ...same, slack: { channel: "C1" } });
    expect(editOf(values, already)).toEqual({ ...same, slack: { channel: "C1", threads: false } });
    expect(differences(values, { theirs: valuesOf(already), mine: values })).toMatchObject([
      { field: "threads", theirs: "yes" },
    ]);
  });
});

test("differences between two versions are described in words", () => {
  const base = valuesOf(webhook);
  const mine = { ...base, name: "erp 2", operators: true, url: "https://new.example" };
  const theirs = { ...valuesOf({ ...webhook, name: "erp 3", timeoutSeconds: 20 }) };
  expect(differences(base, { theirs, mine })).toEqual([
    { field: "name", label: "Name", mine: "erp 2", theirs: "erp 3", changedBy: "both" },
    { field: "operators", label: "For operators", mine: "yes", theirs: "no", changedBy: "mine" },
    { field: "timeoutSeconds", label: "Timeout", mine: "10 s", theirs: "20 s", changedBy: "theirs" },
  ]);
  expect(merged({ theirs, mine }, ["operators"])).toEqual({
    ...theirs,
    operators: true,
    // A typed secret is kept, whatever is chosen, because it cannot be compared.
    url: "https://new.example",
  });
});

test("limits and texts of many lines are shown as people read them", () => {
  const body = ["{", '  "a": 1,', '  "b": 2,', '  "c": 3,', '  "d": 4', "}"];
  const base = valuesOf({ ...webhook, bodyTemplate: body.join("\n"), digestAbove: 20 });
  const mine = { ...base, ratePerSecond: "2.5", digestAbove: "", bodyTemplate: body.join("\n").replace("4", "5") };
  const theirs = { ...base, eventMaxAgeSeconds: "7200", digestAbove: "0" };
  expect(differences(base, { theirs, mine }).map(({ label, ...side }) => [label, side.theirs, side.mine])).toEqual([
    ["Body", '…\n  "c": 3,\n  "d": 4\n}', '…\n  "c": 3,\n  "d": 5\n}'],
    ["Maximum age of events", "2 h", "1 h"],
    ["Messages per second", "no limit", "2.5"],
    ["Digest above", "never", "default"],
  ]);
});
