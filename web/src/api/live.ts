import type { AlertCounts, AlertsEvent } from "./client";

/**
 * How fresh the page is. `polling`: there has been no stream for some time, so everything is read
 * again at an interval. `paused`: nobody looks at the page, so nothing is requested.
 */
export type Connection = "connecting" | "live" | "reconnecting" | "polling" | "paused";

export interface LiveOptions {
  /**
   * Called with each event of the stream: these alerts have changed, or any alert if none are named.
   * Without a stream, called at an interval without anything, because any alert may have changed.
   */
  onAlerts: (counts: AlertCounts | undefined, changed: readonly string[] | undefined) => void;
  open?: (url: string) => EventSource;
  random?: () => number;
}

const firstDelayMs = 500;
const longestDelayMs = 30_000;

/** How often everything is read again while there is no stream. */
export const pollMs = 20_000;

/** How long a stream may take until its first event, which the server sends at once. */
const openingMs = 30_000;
/** How many missing beats end a stream: one may be late, and the next one with it. */
const missedBeats = 2.5;

/**
 * Live follows /api/v1/events while it runs. A stream that ends is opened again after a delay that
 * doubles from half a second to half a minute. Each delay is shortened by up to a half at random,
 * so that many pages do not return at once. The first event of a new stream contains everything
 * that was missed. {@link nudge} ends such a wait. A stream lives from its first event: a proxy may
 * open it and hold back what it brings.
 *
 * A stream whose other end hangs or is gone may never end. It is given up when it is silent for
 * longer than its beats allow. A stream without beats, such as that of an older replica, is trusted
 * until it ends.
 */
export class Live {
  private readonly options: Required<LiveOptions>;
  private readonly listeners = new Set<() => void>();
  private source: EventSource | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private polls: ReturnType<typeof setInterval> | undefined;
  private failures = 0;
  private state: Connection = "paused";

  constructor(options: LiveOptions) {
    this.options = { open: (url) => new EventSource(url), random: Math.random, ...options };
  }

  /** The present state, and how to subscribe to its changes, for useSyncExternalStore. */
  readonly current = (): Connection => this.state;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  start(): void {
    if (this.state !== "paused") return;
    this.failures = 0;
    this.connect("connecting");
  }

  stop(): void {
    this.disconnect();
    this.become("paused");
  }

  /** Tries again at once if there is a reason to: the network is back, or the page is visible again. */
  nudge(): void {
    if (this.state !== "reconnecting" && this.state !== "polling") return;
    this.disconnect();
    this.connect("reconnecting");
  }

  private connect(state: Connection): void {
    this.become(state);
    const source = this.options.open("/api/v1/events");
    this.source = source;
    const lose = () => {
      this.disconnect();
      this.become("reconnecting");
      const delay = Math.min(longestDelayMs, firstDelayMs * 2 ** this.failures++);
      this.timer = setTimeout(() => this.connect("reconnecting"), delay * (1 - this.options.random() / 2));
    };
    this.timer = setTimeout(lose, openingMs);
    let timeoutMs: number | undefined;
    const hear = () => {
      clearTimeout(this.timer);
      if (timeoutMs !== undefined) this.timer = setTimeout(lose, timeoutMs);
      this.failures = 0;
      this.become("live");
    };
    source.addEventListener("beat", (event) => {
      timeoutMs = timeoutOf(event);
      hear();
    });
    source.addEventListener("alerts", (event) => {
      hear();
      const { counts, changed } = dataOf(event);
      this.options.onAlerts(counts, changed);
    });
    source.onerror = lose;
  }

  private disconnect(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
  }

  private poll(): void {
    this.become("polling");
    this.options.onAlerts(undefined, undefined);
  }

  private become(state: Connection): void {
    if (this.state === state || (this.state === "polling" && state === "reconnecting")) return;
    this.state = state;
    if (state === "live" || state === "paused") {
      clearInterval(this.polls);
      this.polls = undefined;
    } else {
      this.polls ??= setInterval(() => this.poll(), pollMs);
    }
    for (const listener of this.listeners) listener();
  }
}

/** How long a stream may be silent after a beat; undefined if the beat does not say when the next one comes. */
function timeoutOf(event: MessageEvent<string>): number | undefined {
  try {
    const { intervalSeconds } = JSON.parse(event.data) as { intervalSeconds?: number };
    return typeof intervalSeconds === "number" && intervalSeconds > 0
      ? intervalSeconds * 1000 * missedBeats
      : undefined;
  } catch {
    return undefined;
  }
}

/** Unreadable data is ignored: the event still says that something changed. */
function dataOf(event: MessageEvent<string>): Partial<AlertsEvent> {
  try {
    const { counts, changed } = JSON.parse(event.data) as Partial<AlertsEvent>;
    return {
      ...(typeof counts?.firing === "number" ? { counts } : {}),
      ...(Array.isArray(changed) ? { changed } : {}),
    };
  } catch {
    return {};
  }
}
