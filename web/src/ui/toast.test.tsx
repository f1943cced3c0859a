import { act, render, screen, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { ConfirmDialog } from "./ConfirmDialog";
import { ToastProvider, useToast } from "./toast";

let say: ReturnType<typeof useToast>;

function Speaker() {
  say = useToast();
  return null;
}

function page(dialogs: readonly string[]) {
  return (
    <ToastProvider>
      <Speaker />
      {dialogs.map((title) => (
        <ConfirmDialog
          key={title}
          title={title}
          action="Go on"
          busy={false}
          error={null}
          onConfirm={() => {}}
          onClose={() => {}}
        >
          Are you sure?
        </ConfirmDialog>
      ))}
    </ToastProvider>
  );
}

test("messages are in the topmost open dialog, outside of which nothing can be used", async () => {
  const run = vi.fn();
  const { rerender } = render(page([]));
  act(() => void say("Not saved.", "failed"));
  const message = screen.getByText("Not saved.");
  const outside = screen.getByRole("region", { name: "Messages" });
  expect(outside).toContainElement(message);

  rerender(page(["First"]));
  expect(within(screen.getByRole("dialog", { name: "First" })).getByText("Not saved.")).toBeVisible();
  rerender(page(["First", "Second"]));
  const second = within(screen.getByRole("dialog", { name: "Second" }));
  expect(second.getByText("Not saved.")).toBeVisible();
  expect(screen.getAllByText("Not saved.")).toHaveLength(1);
  act(() => void say("Acknowledged.", "done", { word: "Undo", run, until: new Date().toISOString() }));
  await userEvent.click(second.getByRole("button", { name: "Undo" }));
  expect(run).toHaveBeenCalledOnce();

  rerender(page(["First"]));
  expect(within(screen.getByRole("dialog", { name: "First" })).getByText("Not saved.")).toBeVisible();
  rerender(page([]));
  expect(screen.getByRole("region", { name: "Messages" })).toBe(outside);
  expect(outside).toHaveTextContent("Not saved.");
});
