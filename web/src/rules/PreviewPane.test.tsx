import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { RulePreview } from "../api/client";
import { noPreview } from "../test/rules";
import { anAlert } from "../test/world";
import { PreviewPane } from "./PreviewPane";

test.each([
  [1, "1 exchange · import"],
  [1200, "1,200 exchanges · import"],
])("a window that counted %i says so", (observed, words) => {
  const count = { observed, threshold: 1, windowSeconds: 600, groupBy: "ROUTE" as const, group: "import" };
  const data: RulePreview = { ...noPreview, alerts: 1, newest: [anAlert(60, { count })] };
  const preview = { data, outdated: false, error: null, complaints: [], retry: () => undefined };
  render(<PreviewPane preview={preview} hours={24} onHours={() => undefined} onPick={() => undefined} />);
  expect(screen.getByText(words)).toBeVisible();
});
