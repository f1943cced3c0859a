import { ApiError, unreachable } from "./errors";

/**
 * Requests the server's first page and compares the scripts in it with those that run here. An
 * error means that the server gave no usable answer.
 */
export async function isOutdated(): Promise<boolean> {
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(new URL("/", globalThis.location.origin), { cache: "no-store" });
    text = await answer.text();
  } catch (cause) {
    throw unreachable(cause);
  }
  if (!answer.ok) throw new ApiError(answer.status, undefined);
  const served = new DOMParser().parseFromString(text, "text/html");
  return scripts(served) !== scripts(document);
}

const scripts = (page: Document) =>
  [...page.querySelectorAll("script[src]")].map((script) => script.getAttribute("src")).join(" ");
