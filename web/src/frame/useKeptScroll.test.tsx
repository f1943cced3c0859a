import { fireEvent, screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test, vi } from "vitest";
import { aRule } from "../test/rules";
import { api, open, startWorld } from "../test/world";

const { server } = startWorld();
const health = { state: "ok", consecutiveFailures: 0 };

test("a page begins at the row that its address names, once that is there", async () => {
  const rules = ["r1", "r2"].map((id) => aRule({ id, name: `Rule ${id}` }));
  const scrolled: string[] = [];
  vi.spyOn(Element.prototype, "scrollIntoView").mockImplementation(function (this: Element) {
    scrolled.push(this.id);
  });
  server.use(
    http.get(api("/rules"), () => HttpResponse.json({ items: rules })),
    http.get(api("/webhooks"), () => HttpResponse.json({ items: [{ id: "w1", name: "#ops", kind: "slack", health }] })),
  );
  const { router } = open("/rules#r2");
  const current = () => [...document.querySelectorAll("tr[aria-current]")].map(({ id }) => id);
  await waitFor(() => expect(current()).toEqual(["r2"]));
  await waitFor(() => expect(scrolled).toEqual(["r2"]));
  await router.navigate({ to: "/webhooks", hash: "w1" });
  await waitFor(() => expect(current()).toEqual(["w1"]));
  await waitFor(() => expect(scrolled.at(-1)).toBe("w1"));
});

test("a person who goes back finds the page where they left it, and one who comes in another way at its top", async () => {
  server.use(http.get(api("/tokens"), () => HttpResponse.json({ items: [] })));
  const { router } = open("/tokens");
  const body = async (heading: string) => {
    const title = await screen.findByRole("heading", { level: 1, name: heading });
    return title.closest("header")?.parentElement?.lastElementChild as HTMLElement;
  };
  const scroll = (element: HTMLElement, top: number) => {
    element.scrollTop = top;
    fireEvent.scroll(element);
  };
  scroll(await body("Tokens"), 400);
  await router.navigate({ to: "/account" });
  const account = await body("Account");
  expect(account.scrollTop).toBe(0);
  scroll(account, 70);
  router.history.back();
  await waitFor(async () => expect((await body("Tokens")).scrollTop).toBe(400));
  await router.navigate({ to: "/account" });
  expect((await body("Account")).scrollTop).toBe(0);
});
