import { act, fireEvent, renderHook, screen, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import {
  beatMs,
  type Draft,
  type DraftOf,
  draftToTake,
  dropDraft,
  holdDraft,
  keepDraft,
  keptDrafts,
} from "../drafts/draft";
import { useDraft } from "../drafts/useDraft";
import { open, paste, startWorld } from "../test/world";
import { ruleKind } from "./drafts";
import { initialValues, type Values } from "./values";

startWorld();

const ofNew: DraftOf<Values> = { person: "u1", kind: ruleKind, id: undefined };
const named = (name: string): Draft<Values, unknown> => ({
  values: { ...initialValues, name },
  at: "2026-11-21T14:00:00Z",
});
const names = () => keptDrafts(ofNew).map(({ draft }) => draft.values.name);

test("a draft of another tab is shown and left alone, and a waiting draft can be continued or discarded", async () => {
  keepDraft(ofNew, "waits", named("Waiting"));
  keepDraft(ofNew, "other", { ...named("In another tab"), at: "2026-11-21T15:00:00Z" });
  holdDraft(ofNew, "other");
  sessionStorage.clear();
  const { user, unmount } = open("/rules/new");
  expect(await screen.findByLabelText("Name")).toHaveValue("Waiting");
  expect(await screen.findByText(/“In another tab” is open in another tab, last changed/)).toBeVisible();
  expect(screen.queryByRole("button", { name: /Discard “In another tab”/ })).toBeNull();
  await paste(user, screen.getByLabelText("Name"), " for me");
  expect(names()).toEqual(["Waiting for me", "In another tab"]);

  // Its tab is closed, and a second draft remains.
  localStorage.removeItem("tocsin.editing.other");
  keepDraft(ofNew, "third", named("Third"));
  fireEvent(window, new Event("storage"));
  await user.click(await screen.findByRole("button", { name: "Discard “Third”" }));
  await waitFor(() => expect(screen.queryByText(/“Third”/)).toBeNull());
  await user.click(screen.getByRole("button", { name: "Continue “In another tab”" }));
  await waitFor(() => expect(screen.getByLabelText("Name")).toHaveValue("In another tab"));
  expect(await screen.findByText(/“Waiting for me” is another draft, last changed/)).toBeVisible();
  expect(names()).toEqual(["In another tab", "Waiting for me"]);
  unmount();

  open("/rules/new");
  expect(await screen.findByLabelText("Name")).toHaveValue("In another tab");
});

test("a tab that was suspended keeps its own when another one has taken it", () => {
  vi.useFakeTimers();
  const slept = renderHook(() => useDraft(ofNew, undefined));
  act(() => void slept.result.current.keep(named("Mine")));
  const mine = keptDrafts(ofNew)[0]?.id ?? "";
  expect(draftToTake(ofNew), "it is held").toBeUndefined();
  dropDraft(ofNew, mine);
  act(() => void vi.advanceTimersByTime(beatMs));
  expect(names()).toEqual(["Mine"]);
  slept.unmount();
  expect(draftToTake(ofNew)?.id, "it waits").toBe(mine);
  vi.useRealTimers();
});

test("two tabs that begin a new rule keep one draft each", () => {
  const [one, two] = [renderHook(() => useDraft(ofNew, undefined)), renderHook(() => useDraft(ofNew, undefined))];
  act(() => void one.result.current.keep(named("One")));
  act(() => void two.result.current.keep({ ...named("Two"), at: "2026-11-21T13:00:00Z" }));
  expect(names()).toEqual(["One", "Two"]);
  act(() => one.result.current.drop());
  expect(names()).toEqual(["Two"]);
});
