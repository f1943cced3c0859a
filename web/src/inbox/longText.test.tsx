import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { beginningOf, LongText } from "./LongText";

test("of a long text the beginning is shown, and all of it when somebody asks", async () => {
  const text = `Refused: ${"order ".repeat(1_000)}the end`;
  render(<LongText text={text} className={undefined} />);
  expect(screen.queryByText(/the end/)).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Show full message" }));
  expect(screen.getByText(/the end/)).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Show less" }));
  expect(screen.queryByText(/the end/)).toBeNull();
});

test("a text is cut after lines or characters, never within one, and not for a little more", () => {
  const lines = Array.from({ length: 100 }, (_, at) => `line ${at}`);
  expect(beginningOf(lines.join("\n"))).toBe(lines.slice(0, 12).join("\n"));
  expect(beginningOf(lines.slice(0, 13).join("\n"))).toBe(lines.slice(0, 13).join("\n"));
  expect(beginningOf("😀".repeat(5_000))).toBe("😀".repeat(1_200));
  expect(beginningOf("a".repeat(1_500))).toBe("a".repeat(1_500));
});
