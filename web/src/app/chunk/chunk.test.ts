import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { Role } from "../../api/access";
import { ApiError } from "../../api/errors";
import { reloadByItself } from "../../ui/reload";
import * as pages from "../pages";
import { Chunk, Outdated } from "./chunk";
import { chunksFor, prefetch } from "./prefetch";
import { watchStyles } from "./styles";

const first = `${globalThis.location.origin}/`;
const server = setupServer();
beforeAll(() => server.listen({ onUnhandledRequest: "error" }));
afterEach(() => server.resetHandlers());
afterAll(() => server.close());

const answers = (answer: () => Response) => server.use(http.get(first, answer));
const page = (scripts = "") => HttpResponse.html(`<!doctype html><title>Tocsin</title>${scripts}`);

/** A part that comes after a number of tries that fail. */
function after(failures: number) {
  let tries = 0;
  const chunk = new Chunk(async () => {
    if (tries++ < failures) throw new TypeError("Failed to fetch dynamically imported module");
    return "part";
  });
  return { chunk, tries: () => tries };
}

test("a part that has come stays, and is asked for once by many", async () => {
  const { chunk, tries } = after(0);
  const heard = vi.fn();
  chunk.subscribe(heard);
  await Promise.all([chunk.load(), chunk.load()]);
  await chunk.load();
  expect(chunk.current()).toEqual({ part: "part" });
  expect([tries(), heard.mock.calls.length]).toEqual([1, 1]);
});

test("a server that is away, or answers with an error, is reported in the API's words, and can be asked again", async () => {
  const { chunk } = after(2);
  answers(() => HttpResponse.error());
  await chunk.load();
  expect(chunk.current().failure).toMatchObject({ status: 0, message: "Tocsin cannot be reached." });
  answers(() => new HttpResponse(null, { status: 502 }));
  await chunk.load();
  expect(chunk.current().failure).toBeInstanceOf(ApiError);
  expect(chunk.current().failure).toMatchObject({ status: 502 });
  await chunk.load();
  expect(chunk.current()).toEqual({ part: "part" });
});

test("a server that is back already is asked once more", async () => {
  const { chunk } = after(1);
  answers(() => page());
  await chunk.load();
  expect(chunk.current()).toEqual({ part: "part" });
});

test.each([
  ["another version", `<script src="/assets/index-other.js"></script>`, "Tocsin has been updated."],
  ["the same version, by a browser that remembers the failure", "", "This page could not be loaded."],
])("%s asks for a reload", async (_, scripts, said) => {
  const { chunk } = after(2);
  answers(() => page(scripts));
  await chunk.load();
  expect(chunk.current().failure).toBeInstanceOf(Outdated);
  expect(chunk.current().failure?.message).toBe(said);
});

test("a style sheet that failed is asked for again, once by several, until it comes", async () => {
  const end = watchStyles();
  const failed = document.body.appendChild(document.createElement("link"));
  failed.rel = "stylesheet";
  failed.dispatchEvent(new Event("error"));
  end();
  expect(failed.isConnected).toBe(false);

  const added: Node[] = [];
  vi.spyOn(document.head, "append").mockImplementation((...nodes) => void added.push(...(nodes as Node[])));
  const { chunk } = after(0);
  const another = after(0).chunk;
  answers(() => HttpResponse.error());
  const both = Promise.all([chunk.load(), another.load()]);
  expect(added).toHaveLength(1);
  added[0]?.dispatchEvent(new Event("error"));
  await both;
  expect(chunk.current().failure).toMatchObject({ status: 0 });

  const again = chunk.load();
  expect(added).toHaveLength(2);
  added[1]?.dispatchEvent(new Event("load"));
  await again;
  await another.load();
  expect([chunk.current(), another.current()]).toEqual([{ part: "part" }, { part: "part" }]);
  expect(added).toHaveLength(2);
});

test("the page is loaded again by itself once, and again only after five minutes", () => {
  const reload = vi.spyOn(globalThis.location, "reload").mockImplementation(() => {});
  const minute = 60_000;
  expect([0, 1, 4.9, 5, 9].map((at) => reloadByItself(at * minute))).toEqual([true, false, false, true, false]);
  expect(reload).toHaveBeenCalledTimes(2);
});

test("a browser that keeps nothing could not tell how often, and leaves it to the reader", () => {
  const reload = vi.spyOn(globalThis.location, "reload").mockImplementation(() => {});
  vi.stubGlobal("sessionStorage", undefined);
  expect(reloadByItself()).toBe(false);
  vi.unstubAllGlobals();
  expect(reload).not.toHaveBeenCalled();
});

test("what is fetched ahead comes one by one, and stops at a failure or when it is not wanted any more", async () => {
  const at = () => new Response(null, { status: 502 });
  answers(at);
  const chunks = [after(0), after(1), after(0)];
  const run = (signal = new AbortController().signal) =>
    prefetch(
      chunks.map(({ chunk }) => chunk),
      signal,
      () => Promise.resolve(),
    );
  await run(AbortSignal.abort());
  expect(chunks.map(({ tries }) => tries())).toEqual([0, 0, 0]);
  await run();
  expect(chunks.map(({ tries }) => tries())).toEqual([1, 1, 0]);
  await run();
  expect(chunks.map(({ tries }) => tries())).toEqual([1, 2, 1]);
});

test("only what one's role may open is fetched ahead", () => {
  const { users, newRule, rules } = pages;
  const has = (role: Role) => {
    const chunks = chunksFor({ kind: "user", name: "Ada", role, tenant: "default" });
    return [rules, newRule, users].map(({ chunk }) => chunks.includes(chunk));
  };
  expect(has("viewer")).toEqual([true, false, false]);
  expect(has("editor")).toEqual([true, true, false]);
  expect(has("admin")).toEqual([true, true, true]);
});
