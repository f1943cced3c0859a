import { fireEvent, screen, waitFor } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, test } from "vitest";
import { api, open, startWorld } from "../test/world";

const { server } = startWorld();

test("a page is where it was left for whoever goes back, and at its top for others", async () => {
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
