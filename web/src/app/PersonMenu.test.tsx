import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { afterEach, expect, test, vi } from "vitest";
import { anAlert, api, open, startWorld } from "../test/world";
import { notifications } from "../ui/announce";
import { dayHours, timeZone } from "../ui/time";

const { server, world } = startWorld();
afterEach(() => {
  vi.restoreAllMocks();
  notifications.set("off");
  timeZone.set("local");
  dayHours.set("24");
});

test("the personal menu chooses zone and clock, and is left by Escape, which closes nothing else", async () => {
  const { user, router } = open("/account");
  const button = await screen.findByRole("button", { name: "Ada" });
  await user.click(button);
  const menu = within(document.getElementById(button.getAttribute("aria-controls") ?? "") as HTMLElement);
  await user.selectOptions(menu.getByLabelText("Time zone"), "UTC");
  await user.selectOptions(menu.getByLabelText("Clock"), "12-hour");
  expect([timeZone.current(), dayHours.current()]).toEqual(["utc", "12"]);
  await user.keyboard("{Escape}");
  expect(button).toHaveAttribute("aria-expanded", "false");
  expect(button).toHaveFocus();
  expect(router.state.location.pathname).toBe("/account");
});

test("while the personal menu is open, keys do not act on the page behind it", async () => {
  world.alerts = [anAlert(5)];
  const { user } = open("/inbox?fold=none");
  const list = within(await screen.findByRole("list", { name: "Alerts" }));
  await waitFor(() => expect(list.getAllByRole("link")).toHaveLength(1));
  await user.keyboard("j");
  await user.click(screen.getByRole("button", { name: "Ada" }));
  await user.tab();
  expect(screen.getByRole("link", { name: "Account" })).toHaveFocus();
  await user.keyboard("x?");
  expect(screen.queryByText("1 selected")).toBeNull();
  expect(screen.queryByRole("dialog")).toBeNull();
  await user.keyboard("{Escape}x");
  expect(screen.getByText("1 selected")).toBeVisible();
});

test("settings are for administrators, in the rail and on their pages", async () => {
  server.use(http.get(api("/users"), () => HttpResponse.json({ items: [] })));
  open("/users");
  expect(await screen.findByRole("link", { name: "Settings" })).toHaveAttribute("href", "/users");
  const tabs = within(await screen.findByRole("navigation", { name: "Settings" }));
  expect(tabs.getAllByRole("link").map((link) => link.textContent)).toEqual([
    "Users",
    "Teams",
    "Tokens",
    "Audit log",
    "Keys",
  ]);
});

test.each(["/silences", "/routing", "/users", "/account"])(
  "on a phone, the item that leads to %s is marked",
  async (path) => {
    const wide = window.matchMedia.bind(window);
    vi.spyOn(window, "matchMedia").mockImplementation((query) => {
      const answer = wide(query);
      if (query === "(max-width: 767px)") Object.defineProperty(answer, "matches", { value: true });
      return answer;
    });
    server.use(http.get(api("/users"), () => HttpResponse.json({ items: [] })));
    const { user, router } = open(path);
    const more = await screen.findByRole("button", { name: "More" });
    expect(more).toHaveAttribute("aria-current", "true");
    await user.click(screen.getByRole("link", { name: /Rules/ }));
    await waitFor(() => expect(router.state.location.pathname).toBe("/rules"));
    expect(more).not.toHaveAttribute("aria-current");
  },
);

test("where the rail has all pages, only their own items are marked", async () => {
  open("/silences");
  const person = await screen.findByRole("button", { name: "Ada" });
  expect(person).not.toHaveAttribute("aria-current");
  expect(screen.getByRole("link", { name: "Silences" })).toHaveAttribute("aria-current", "page");
});

test("notifications are on once the browser has shown one, and the page says why they are not", async () => {
  const shown: string[] = [];
  const browser = { permission: "denied", constructs: false };
  vi.stubGlobal(
    "Notification",
    class {
      static get permission() {
        return browser.permission;
      }
      static requestPermission = async () => browser.permission;
      constructor(_title: string, { body }: { body: string }) {
        if (!browser.constructs) throw new TypeError("Illegal constructor");
        shown.push(body);
      }
    },
  );
  const { user } = open("/account");
  const box = await screen.findByRole("checkbox", { name: /^Notify me about new alerts/ });
  expect(screen.getByText("Works while Tocsin is open in a tab.")).toBeVisible();
  await user.click(box);
  expect(await screen.findByText(/^This browser blocks notifications from Tocsin\./)).toBeVisible();
  browser.permission = "granted";
  await user.click(box);
  expect(await screen.findByText("This browser does not support notifications.")).toBeVisible();
  expect(box).not.toBeChecked();
  browser.constructs = true;
  await user.click(box);
  await waitFor(() => expect(box).toBeChecked());
  expect(shown).toEqual(["You will be notified of new alerts."]);
});
