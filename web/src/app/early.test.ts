import { createMemoryHistory } from "@tanstack/react-router";
import { HttpResponse, http } from "msw";
import { afterEach, expect, test } from "vitest";
import { pageModules } from "../../build/page-links";
import { accessKeys } from "../api/access";
import { createCache } from "../api/cache";
import { ruleShown } from "../api/rules";
import { api, startWorld } from "../test/world";
import type { LazyPage } from "./chunk/lazyPage";
import { beginEarly } from "./early";
import { createAppRouter } from "./router";

const { server } = startWorld();
const asked: string[] = [];
server.events.on("request:start", ({ request }) => asked.push(new URL(request.url).pathname.replace("/api/v1", "")));
afterEach(() => void asked.splice(0));

const newRouter = () => createAppRouter(createMemoryHistory());

test("for a signed-in user, the identity and the data of the page are requested early", async () => {
  server.use(http.get(api("/rules/:id"), ({ params }) => HttpResponse.json({ id: params.id })));
  const cache = createCache();
  beginEarly(cache, newRouter(), "/rules/r1");
  await expect.poll(() => cache.getQueryData(ruleShown("r1").queryKey)).toEqual({ id: "r1" });
  await expect.poll(() => cache.getQueryData(accessKeys.me)).toMatchObject({ name: "Ada" });
  expect(asked.toSorted()).toEqual(["/me", "/rules/r1", "/session"]);
});

test("nothing is asked for a person who is not signed in", async () => {
  server.use(http.get(api("/session"), () => HttpResponse.json({ signedIn: false, open: false, setupNeeded: false })));
  const cache = createCache();
  beginEarly(cache, newRouter(), "/rules/r1");
  await expect.poll(() => cache.getQueryData(accessKeys.session)).toMatchObject({ signedIn: false });
  expect(asked).toEqual(["/session"]);
});

// Otherwise a page's code would be loaded late, or another page's code in its place.
test("the server names the code of each page that has its own", async () => {
  const lazy = Object.values(newRouter().routesByPath).flatMap(({ fullPath, options }) => {
    const { chunk } = (options.component ?? {}) as Partial<LazyPage>;
    return chunk ? [{ fullPath, chunk }] : [];
  });
  expect(lazy.length).toBeGreaterThan(10);
  for (const { fullPath, chunk } of lazy) {
    await chunk.load();
    const module = (await import(/* @vite-ignore */ `../../${pageModules[fullPath]}`)) as Record<string, unknown>;
    expect(Object.values(module), fullPath).toContain(chunk.current().part);
  }
});
