import { ApiError, unreachable } from "../../api/errors";
import { missingStyles } from "./styles";

/** How far a part of the application has come. A failure stands until a later try has ended. */
export interface Progress<T> {
  part?: T;
  failure?: Error;
}

/** The part cannot come to this page any more: the page has to be loaded anew. */
export class Outdated extends Error {
  override name = "Outdated";
}

/**
 * A part of the application that comes in a file of its own, when it is first asked for. What has come stays; what has
 * not can be asked for again. A browser that remembers a failed import for as long as the page lives ends as
 * {@link Outdated} once the server answers.
 */
export class Chunk<T> {
  private readonly fetchPart: () => Promise<T>;
  private readonly listeners = new Set<() => void>();
  private progress: Progress<T> = {};
  private trying: Promise<void> | undefined;

  constructor(fetchPart: () => Promise<T>) {
    this.fetchPart = fetchPart;
  }

  /** The present state, and how to hear of its changes: what useSyncExternalStore asks for. */
  readonly current = (): Progress<T> => this.progress;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Tries, unless it is there; several at once are one. It is over when the outcome is known, and never rejects. */
  readonly load = (): Promise<void> => {
    if (this.progress.part !== undefined) return Promise.resolve();
    this.trying ??= this.attempt().then((progress) => {
      this.trying = undefined;
      this.progress = progress;
      for (const listener of this.listeners) listener();
    });
    return this.trying;
  };

  private async attempt(): Promise<Progress<T>> {
    try {
      await missingStyles();
      return { part: await this.fetchPart() };
    } catch {
      // The reason that a browser gives is for developers, and differs from one to the next.
    }
    const failure = await whyNot();
    if (failure) return { failure };
    try {
      await missingStyles();
      return { part: await this.fetchPart() };
    } catch (cause) {
      return { failure: new Outdated("This page could not be loaded.", { cause }) };
    }
  }
}

/** Asks the server for its first page, which names the version that it has. Undefined where it is the one that runs here. */
async function whyNot(): Promise<Error | undefined> {
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(new URL("/", globalThis.location.origin), { cache: "no-store" });
    text = await answer.text();
  } catch (cause) {
    return unreachable(cause);
  }
  if (!answer.ok) return new ApiError(answer.status, undefined);
  const theirs = new DOMParser().parseFromString(text, "text/html");
  return scripts(theirs) === scripts(document) ? undefined : new Outdated("Tocsin was updated.");
}

const scripts = (page: Document) =>
  [...page.querySelectorAll("script[src]")].map((script) => script.getAttribute("src")).join(" ");
