import { expect, test } from "vitest";
import { IconRules } from "../../ui/icons";
import { type Entry, sift } from "./entries";

const entry = (section: Entry["section"], label: string, more: Partial<Entry> = {}): Entry => ({
  id: `${section} ${label}`,
  section,
  label,
  icon: IconRules,
  run: () => {},
  ...more,
});

const all = [
  entry("Rules", "Reorders of spare parts"),
  entry("Rules", "Failed orders"),
  entry("Webhooks", "#ops"),
  entry("Pages", "Deliveries", { words: "messages" }),
  entry("Actions", "Theme: dark"),
  entry("Alerts", "billing · export", { found: true }),
];
const fits = (text: string) => sift(all, text).flatMap((group) => group.entries.map(({ label }) => label));

test.each([
  ["order", ["Failed orders", "Reorders of spare parts", "billing · export"]],
  ["FAIL ord", ["Failed orders", "billing · export"]],
  ["messages", ["Deliveries", "billing · export"]],
  ["ops", ["#ops", "billing · export"]],
  ["webhooks", ["#ops", "billing · export"]],
  ["dark", ["Theme: dark", "billing · export"]],
  ["nothing of the kind", ["billing · export"]],
])("“%s” reaches %j", (text, want) => expect(fits(text)).toEqual(want));

test("without a text, pages and actions are listed", () => {
  expect(fits(" ")).toEqual(["Deliveries", "Theme: dark", "billing · export"]);
});

test("a section shows the best of many", () => {
  const many = Array.from({ length: 30 }, (_, at) => entry("Rules", `rule ${at}`));
  expect(sift(many, "rule")[0]?.entries).toHaveLength(14);
});
