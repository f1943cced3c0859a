import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Webhook } from "../api/client";
import { Health } from "./Health";

const past = new Date(Date.now() - 20_000).toISOString();

test.each([
  ["open", /Not responding.*1 failed attempt in a row.*; next probe soon\./],
  ["held", /The receiver asked for a pause; sending resumes soon\./],
] as const)("what a webhook that is %s waits for is never in the past", (state, words) => {
  const webhook = { health: { state, until: past, consecutiveFailures: 1 } } as Webhook;
  const { container } = render(<Health webhook={webhook} />);
  expect(container).toHaveTextContent(words);
  expect(screen.queryByText(/ago/)).toBeNull();
});
