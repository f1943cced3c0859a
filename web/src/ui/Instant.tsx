import type { ClipboardEvent } from "react";
import { useNow } from "./now";
import { ago, exactTime, shortTime } from "./time";

/** Copying an instant that stands alone gives it in UTC, as the API wrote it. */
function copyUTC(event: ClipboardEvent<HTMLTimeElement>, at: string) {
  if (window.getSelection()?.toString().trim() !== event.currentTarget.textContent) return;
  event.clipboardData.setData("text/plain", at);
  event.preventDefault();
}

/** How long ago something happened, with the exact instant on hover. */
export function Ago({ at }: { at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={exactTime(at)} onCopy={(event) => copyUTC(event, at)}>
      {ago(at, now)}
    </time>
  );
}

/** When something happened, by the reader's clock, with the exact instant on hover. */
export function ClockTime({ at }: { at: string }) {
  const now = useNow();
  return (
    <time className="mono" dateTime={at} title={exactTime(at)} onCopy={(event) => copyUTC(event, at)}>
      {shortTime(at, now)}
    </time>
  );
}

/** The exact instant itself, to the last digit that is known. */
export function ExactTime({ at }: { at: string }) {
  return (
    <time className="mono" dateTime={at} title={at} onCopy={(event) => copyUTC(event, at)}>
      {exactTime(at)}
    </time>
  );
}
