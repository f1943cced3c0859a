import { render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { useState } from "react";
import { expect, test } from "vitest";
import { SearchField } from "./SearchField";

/** The address changes some time after the field has reported a text. */
function Slow() {
  const [value, setValue] = useState("");
  return <SearchField label="Search" value={value} onChange={(text) => setTimeout(() => setValue(text), 300)} />;
}

test("what is typed before the address has changed stays", async () => {
  const user = userEvent.setup();
  render(<Slow />);
  const field = screen.getByRole("searchbox", { name: "Search" });
  await user.type(field, "time");
  // It has reported the text, and the address has not changed yet.
  await new Promise((resolve) => setTimeout(resolve, 320));
  await user.type(field, "out");
  expect(field).toHaveValue("timeout");
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(field).toHaveValue("timeout");
});
