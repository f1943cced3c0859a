import { act, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { ExactTip } from "./ExactTip";

const tip = () => screen.getByRole("tooltip", { hidden: true });

/** Focuses a row with an instant. */
function focusRow() {
  vi.useFakeTimers();
  render(
    <>
      <ul>
        <li tabIndex={-1} data-testid="row">
          <time dateTime="2026-11-28T10:00:00Z">now</time>
        </li>
      </ul>
      <ExactTip />
    </>,
  );
  const row = screen.getByTestId("row");
  act(() => row.focus());
  return row;
}

test("the instants of the row with the focus are said once it has rested there", () => {
  focusRow();
  expect(tip()).not.toBeVisible();
  act(() => void vi.advanceTimersByTime(600));
  expect(tip()).toBeVisible();
  expect(tip()).toHaveTextContent("2026");
});

test("nothing is said of a row that has left the page meanwhile", () => {
  const row = focusRow();
  // A browser that takes away what has the focus may not say so.
  row.parentElement?.replaceChildren();
  act(() => void vi.advanceTimersByTime(600));
  expect(tip()).not.toBeVisible();
});
