import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { FilterMenu } from "./FilterMenu";

test.each([
  [[], "Rule"],
  [["r1"], "Rule: Failed orders"],
  [["r1", "r3"], "Rule: Failed orders +1"],
  [["r3"], "Rule: deleted rule"],
])("the button of a menu in which %j is chosen says what it filters, and by what", (chosen, name) => {
  const choices = [{ value: "r1", text: "Failed orders" }];
  render(<FilterMenu name="Rule" choices={choices} chosen={chosen} unknown="deleted rule" onChange={() => {}} />, {
    wrapper: MantineProvider,
  });
  expect(screen.getByRole("button")).toHaveAccessibleName(name);
});
