import { MantineProvider, TextInput } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { useState } from "react";
import { expect, test } from "vitest";
import { FormDialog } from "./FormDialog";
import { Select } from "./Select";

function Snooze() {
  const [wrong, setWrong] = useState("");
  return (
    <FormDialog title="Snooze" action="Snooze" onSubmit={() => setWrong("Choose a time.")} onClose={() => {}}>
      <Select label="How long" description="Then you are reminded." options={[]} onChange={() => {}} error={wrong} />
      <TextInput label="Until" error={wrong} />
    </FormDialog>
  );
}

test("a field that the dialog refuses gets the focus, and says why", async () => {
  render(<Snooze />, { wrapper: MantineProvider });
  const field = screen.getByLabelText("How long");
  expect(field).toHaveAccessibleDescription("Then you are reminded.");
  await userEvent.click(screen.getByRole("button", { name: "Snooze" }));
  expect(field).toHaveFocus();
  expect(field).toHaveAccessibleDescription("Then you are reminded. Choose a time.");
});
