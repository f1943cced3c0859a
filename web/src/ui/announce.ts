import { setting } from "./setting";
import { counted } from "./words";

/** Whether this browser announces new alerts outside the page: by a system notification, by a sound. */
export const notifications = setting("notifications", ["off", "on"]);
export const sound = setting("sound", ["off", "on"]);

/** How long nothing more is announced after an announcement: a storm is announced once. */
export const quietMs = 15_000;

export interface Announced {
  firing: number;
  at: number;
}

export interface Announcement {
  /** "" if there is nothing to announce. */
  text: string;
  /** What to remember of it. */
  seen: Announced;
  /** The time after which to check the same number again: alerts during the quiet time are announced then. */
  againMs?: number;
}

/**
 * The announcement when the number of firing alerts changes from the last seen number to another
 * one. The first number is not announced.
 */
export function announcement(last: Announced | undefined, firing: number, now: number): Announcement {
  if (last === undefined) return { text: "", seen: { firing, at: Number.NEGATIVE_INFINITY } };
  // A smaller number is not announced.
  if (firing <= last.firing) return { text: "", seen: { firing, at: last.at } };
  // A clock that was set back must not extend the quiet time.
  const quietForMs = Math.min(quietMs, last.at + quietMs - now);
  if (quietForMs > 0) return { text: "", seen: { ...last, at: now + quietForMs - quietMs }, againMs: quietForMs };
  return {
    text: `${counted(firing - last.firing, "new alert")}, ${counted(firing, "alert")} firing`,
    seen: { firing, at: now },
  };
}

/**
 * Shows a system notification, which replaces the previous one, and returns whether the browser does so. On Android,
 * browsers have `Notification` and refuse to construct one.
 */
export function notify(text: string): boolean {
  if (!("Notification" in globalThis) || Notification.permission !== "granted") return false;
  try {
    new Notification("Tocsin", { body: text, tag: "tocsin" });
    return true;
  } catch {
    return false;
  }
}

/** Two short tones. A browser that the person has not interacted with may stay silent. */
export function beep(): void {
  try {
    const context = new AudioContext();
    const gain = context.createGain();
    gain.gain.value = 0.15;
    gain.connect(context.destination);
    for (const [at, pitch] of [
      [0, 880],
      [0.18, 660],
    ] as const) {
      const tone = context.createOscillator();
      tone.frequency.value = pitch;
      tone.connect(gain);
      tone.start(context.currentTime + at);
      tone.stop(context.currentTime + at + 0.14);
    }
    setTimeout(() => void context.close(), 1_000);
  } catch {
    // A browser without sound stays silent.
  }
}
