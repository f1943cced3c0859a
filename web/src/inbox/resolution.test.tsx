import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Alert } from "../api/client";
import { anAlert, open, startWorld } from "../test/world";

const { world } = startWorld();

const causes: [NonNullable<Alert["resolution"]>, RegExp][] = [
  [{ reason: "AGE" }, /^Resolved by age/],
  [{ reason: "EDIT" }, /^Resolved by an edit/],
  [{ reason: "EVIDENCE", executionId: "done-1", startedAt: "2026-11-20T14:00:00.5Z" }, /^Resolved by evidence/],
];

test.each(causes)("what resolved an alert is in its timeline: %j", async (resolution, said) => {
  const alert = anAlert(5, { route: "import" });
  world.alerts = [{ ...alert, state: "RESOLVED", resolvedAt: "2026-11-20T14:02:00Z", resolution }];
  open(`/inbox/${alert.id}`);
  const words = await screen.findByText(said);
  expect(words).toBeVisible();
  if (resolution.executionId) {
    const link = screen.getByRole("link", { name: "done-1" });
    expect(link).toHaveAttribute("href", expect.stringContaining("executionId=done-1"));
  }
});
