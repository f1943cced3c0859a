import { isOutdated } from "../../api/version";
import { missingStyles } from "./styles";

/** The state of a part of the application. A failure remains until a later try has ended. */
export interface Progress<T> {
  part?: T;
  failure?: Error;
}

/** The part cannot be loaded into this page any more: the page must be reloaded. */
export class Outdated extends Error {
  override name = "Outdated";
}

/**
 * A part of the application in a separate file, which is loaded when it is first needed. A loaded
 * part stays; a failed one can be requested again. Some browsers remember a failed import while the
 * page lives: this ends as {@link Outdated} once the server answers.
 */
export class Chunk<T> {
  private readonly fetchPart: () => Promise<T>;
  private readonly listeners = new Set<() => void>();
  private progress: Progress<T> = {};
  private trying: Promise<void> | undefined;

  constructor(fetchPart: () => Promise<T>) {
    this.fetchPart = fetchPart;
  }

  /** The present state, and how to subscribe to its changes, for useSyncExternalStore. */
  readonly current = (): Progress<T> => this.progress;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /**
   * Loads the part unless it is loaded; concurrent calls share one try. It resolves when the result
   * is known, and never rejects.
   */
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
      // The reason that a browser gives is for developers, and differs between browsers.
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

/** Why a part could not be loaded. Undefined if the server runs the version that is loaded here. */
async function whyNot(): Promise<Error | undefined> {
  try {
    return (await isOutdated()) ? new Outdated("Tocsin has been updated.") : undefined;
  } catch (error) {
    return error as Error;
  }
}
