import { MantineProvider, TextInput } from "@mantine/core";
import { fireEvent, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { useState } from "react";
import { expect, test, vi } from "vitest";
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

function Rename() {
  const [busy, setBusy] = useState(false);
  return (
    <>
      <FormDialog title="Rename" action="Rename" busy={busy} onSubmit={() => setBusy(true)} onClose={() => {}}>
        <TextInput label="Name" />
      </FormDialog>
      <button type="button" onClick={() => setBusy(false)}>
        Answer
      </button>
    </>
  );
}

test("what is being sent cannot be edited, and the focus is where it was afterwards", async () => {
  render(<Rename />, { wrapper: MantineProvider });
  const field = screen.getByLabelText("Name");
  await userEvent.type(field, "orders{Enter}");
  expect(field).toBeDisabled();
  // As a browser does with a field that is disabled.
  field.blur();
  fireEvent.click(screen.getByText("Answer"));
  expect(field).toBeEnabled();
  expect(field).toHaveFocus();
});

test("a dialog whose answer is shown once stays open until it is there", async () => {
  const onClose = vi.fn();
  const dialog = (busy: boolean) => (
    <FormDialog title="New token" action="Create token" once busy={busy} onClose={onClose}>
      Its name
    </FormDialog>
  );
  const { rerender } = render(dialog(true));
  const element = screen.getByRole<HTMLDialogElement>("dialog");
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(fireEvent(element, new Event("cancel", { cancelable: true }))).toBe(false);
  element.close();
  await vi.waitFor(() => expect(element.open).toBe(true));
  expect(onClose).not.toHaveBeenCalled();
  rerender(dialog(false));
  fireEvent(element, new Event("cancel", { cancelable: true }));
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(onClose).toHaveBeenCalledTimes(2);
});
