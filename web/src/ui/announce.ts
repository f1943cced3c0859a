import { setting } from "./setting";
import { counted } from "./words";

/** Whether this browser tells of new alerts beside the page: by a notification of the system, by a sound. */
export const notifications = setting("notifications", ["off", "on"]);
export const sound = setting("sound", ["off", "on"]);

/** How long nothing more is announced after something was: a storm is announced once. */
export const quietMs = 15_000;

export interface Announced {
  firing: number;
  at: number;
}

/**
 * What is to be announced when the number of firing alerts goes from what was last seen to another one, "" for nothing, and
 * what to remember of it. The first number is no news.
 */
export function announcement(
  last: Announced | undefined,
  firing: number,
  now: number,
): { text: string; seen: Announced } {
  if (last === undefined) return { text: "", seen: { firing, at: Number.NEGATIVE_INFINITY } };
  // Less is no news either. What comes while it is quiet is announced together afterwards.
  if (firing <= last.firing) return { text: "", seen: { firing, at: last.at } };
  if (now - last.at < quietMs) return { text: "", seen: last };
  return {
    text: `${counted(firing - last.firing, "new alert")}, ${counted(firing, "alert")} firing`,
    seen: { firing, at: now },
  };
}

/** Two short tones. A browser that was not touched yet may stay silent. */
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
    // A browser without sound has said nothing.
  }
}
