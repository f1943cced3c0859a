import { describe, expect, test } from "vitest";
import { usualSide } from "../ui/ConflictDialog";
import { differences, merged } from "./conflict";
import { same } from "./definition";
import { initialAttribute, initialValues, type Values } from "./values";

const change = (edit: (values: Values) => void) => {
  const values = structuredClone(initialValues);
  edit(values);
  return values;
};
const base = change((v) => {
  v.name = "Orders";
});
const names = (id: string) => `#${id}`;

test("each field that differs is listed once, with who changed it", () => {
  const theirs = change((v) => {
    v.name = "Failed orders";
    v.severity = "WARNING";
    v.webhookIds = ["ops"];
    v.filter.minDurationMs = 500;
  });
  const mine = change((v) => {
    v.name = "Orders that fail";
    v.filter.attributes = [{ ...initialAttribute, key: "customer", value: "ACME" }];
    v.filter.minDurationMs = 500;
  });
  expect(differences(base, { theirs, mine }, names)).toEqual([
    { field: "name", label: "Name", theirs: "Failed orders", mine: "Orders that fail", changedBy: "both" },
    { field: "filter.attributes", label: "Attributes", theirs: "–", mine: "customer = “ACME”", changedBy: "mine" },
    { field: "severity", label: "Severity", theirs: "Warning", mine: "Critical", changedBy: "theirs" },
    { field: "webhookIds", label: "Webhooks", theirs: "#ops", mine: "–", changedBy: "theirs" },
  ]);
});

test("what does not apply to the fire mode of a side is absent there", () => {
  const mine = change((v) => {
    v.name = "Orders";
    v.fireMode = "COUNT_IN_WINDOW";
  });
  const found = differences(base, { theirs: base, mine }, names);
  expect(found.map(({ label, theirs, mine: own }) => [label, theirs, own])).toEqual([
    ["Alert on", "Each exchange", "A number of exchanges"],
    ["Threshold", "–", "5"],
    ["Window", "–", "10 min"],
    ["Message on resolve", "–", "yes"],
    ["Look-back", "1 h", "–"],
  ]);
});

test("choices, targets and recipients are described in the words of the form", () => {
  const counts = (edit: (values: Values) => void) =>
    change((v) => {
      v.name = "Orders";
      v.fireMode = "RATIO_IN_WINDOW";
      edit(v);
    });
  const theirs = counts((v) => {
    v.groupBy = "ERROR_TYPE";
    v.filter.statuses = ["FAILED", "COMPLETED"];
    v.minVolume = 1500;
    v.filter.minDurationMs = 2500;
  });
  const mine = counts((v) => {
    v.targets = { user: ["ada"], team: ["integration"], role: ["editor"] };
    v.useRoutingPolicy = true;
  });
  const found = differences(
    counts(() => {}),
    { theirs, mine },
    names,
  );
  expect(found.map(({ label, theirs: saved, mine: own }) => [label, saved, own])).toEqual([
    ["Exchanges that", "failed, completed", "failed"],
    ["Minimum duration", "2,500 ms", "–"],
    ["Minimum volume", "1,500 exchanges", "20 exchanges"],
    ["Group by", "Error type", "None"],
    ["Targets", "–", "ada, team integration, role editor"],
    ["Who is notified", "These webhooks", "The routing policy"],
  ]);
});

test("both sides are kept where only one changed a field, and a choice overrules that", () => {
  const theirs = change((v) => {
    v.name = "Orders";
    v.severity = "WARNING";
  });
  const mine = change((v) => {
    v.name = "Orders";
    v.scope.routes = ["order-*"];
  });
  const sides = { theirs, mine };
  const usual = differences(base, sides, names).filter((d) => usualSide(d) === "mine");
  const both = merged(
    sides,
    usual.map((d) => d.field),
  );
  expect([both.severity, both.scope.routes]).toEqual(["WARNING", ["order-*"]]);
  expect(same(merged(sides, []), theirs)).toBe(true);
  expect(same(merged(sides, ["severity", "scope.routes"]), mine)).toBe(true);
});

describe("the fields of a fire mode come with it", () => {
  const all = (sides: Record<"theirs" | "mine", Values>) => differences(base, sides, names).map(({ field }) => field);

  test("also those that say no, or nothing", () => {
    const theirs = change((v) => {
      v.name = "Failed orders";
    });
    const counts = change((v) => {
      v.name = "Orders";
      v.fireMode = "COUNT_IN_WINDOW";
      v.notifyOnResolve = false;
      v.forDurationSeconds = 0;
    });
    const both = merged({ theirs, mine: counts }, all({ theirs, mine: counts }));
    expect([both.fireMode, both.notifyOnResolve, both.name]).toEqual(["COUNT_IN_WINDOW", false, "Orders"]);

    const each = change((v) => {
      v.name = "Orders";
      v.lookBackSeconds = 0;
    });
    const one = merged({ theirs: counts, mine: each }, all({ theirs: counts, mine: each }));
    expect([one.fireMode, one.lookBackSeconds]).toEqual(["PER_EXCHANGE", 0]);
    expect(same(one, each)).toBe(true);
  });

  test("and none of the other one's", () => {
    const theirs = change((v) => {
      v.fireMode = "COUNT_IN_WINDOW";
      v.threshold = 100;
      v.lookBackSeconds = 60;
    });
    const sides = { theirs, mine: base };
    const kept = merged(sides, ["threshold", "windowSeconds", "notifyOnResolve"]);
    expect(same(kept, theirs)).toBe(true);
    const taken = merged(sides, ["fireMode", "name"]);
    expect(same(taken, base)).toBe(true);
  });
});
