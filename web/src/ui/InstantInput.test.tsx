import { MantineProvider } from "@mantine/core";
import { fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { InstantInput } from "./InstantInput";
import { timeZone } from "./time";

let value: string;

function Ends({ stored }: { stored: string }) {
  const [at, setAt] = useState(stored);
  value = at;
  return <InstantInput label="Ends" value={at} onChange={setAt} />;
}

/** Types a time, and returns what the field then says. */
function says(text: string, stored = "") {
  const { unmount } = render(<Ends stored={stored} />, { wrapper: MantineProvider });
  const field = screen.getByLabelText("Ends");
  if (text) fireEvent.change(field, { target: { value: text } });
  const said = screen.getByText(/^Time zone: /).textContent?.replace(/^Time zone: [^.]*\.\s*/, "");
  unmount();
  return said;
}

beforeEach(() => void vi.stubEnv("TZ", "Europe/Berlin"));
afterEach(() => {
  vi.unstubAllEnvs();
  timeZone.set("local");
});

test("a time that the clocks skip says which one it means", () => {
  expect(says("2026-03-29T02:30")).toBe("Clocks go forward, and skip this time. It means 03:30 CEST.");
  expect(value).toBe("2026-03-29T01:30:00.000Z");
  expect([says("2026-03-29T01:59"), says("2026-03-29T03:00"), says("2026-03-28T02:30")]).toEqual(["", "", ""]);
});

test("a time that comes twice says which one it means", () => {
  expect(says("2026-10-25T02:30")).toBe("Clocks go back, and this time comes twice. It means the first, 02:30 CEST.");
  expect(value).toBe("2026-10-25T00:30:00.000Z");
  const second = "Clocks go back, and this time comes twice. It means the second, 02:30 CET.";
  expect(says("", "2026-10-25T01:30:00Z")).toBe(second);
  expect([says("2026-10-25T01:59"), says("2026-10-25T03:00"), says("2026-10-26T02:30")]).toEqual(["", "", ""]);
});

test("in UTC every time comes once, and a half-typed one says nothing", () => {
  expect([says("0202-03-29T02:30"), says("")]).toEqual(["", ""]);
  timeZone.set("utc");
  expect([says("2026-03-29T02:30"), says("2026-10-25T02:30")]).toEqual(["", ""]);
});

test("a shift of half an hour, and one south of the equator", () => {
  vi.stubEnv("TZ", "Australia/Lord_Howe");
  // The page names the zone in which it was opened.
  expect(says("2026-10-04T02:15")).toMatch(/^Clocks go forward, and skip this time\./);
  expect(says("2026-04-05T01:45")).toMatch(/^Clocks go back, and this time comes twice\. It means the first, /);
});
