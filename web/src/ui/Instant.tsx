import type { ClipboardEvent, ReactNode } from "react";
import { useAtNow } from "./now";
import { useSetting } from "./setting";
import { ago, dayHours, exactTime, shortTime, timeZone } from "./time";

interface Props {
  at: string;
  /** Whether Tab stops here; in a row, the focused element already shows the row's instants. */
  stop?: boolean;
}

/** How long ago something happened, with the exact instant on hover and on focus. */
export function Ago({ at, stop }: Props) {
  return (
    <Instant at={at} stop={stop}>
      <Relative at={at} />
    </Instant>
  );
}

/** When something happened, by the reader's clock, with the exact instant on hover and on focus. */
export function ClockTime({ at, stop }: Props) {
  return (
    <Instant at={at} stop={stop}>
      <Clock at={at} />
    </Instant>
  );
}

/** When something happened by the reader's clock, and how long ago that is. */
export function When({ at, stop }: Props) {
  return (
    <Instant at={at} stop={stop}>
      <Clock at={at} /> · <Relative at={at} />
    </Instant>
  );
}

/** As time passes, only this text renders again, and nothing around it. */
function Relative({ at }: { at: string }) {
  return useAtNow((now) => ago(at, now));
}

function Clock({ at }: { at: string }) {
  return <span className="mono">{useAtNow((now) => shortTime(at, now))}</span>;
}

/** The exact instant itself, to the last digit that is known. */
export function ExactTime({ at }: { at: string }) {
  return (
    <Instant at={at} stop={false} exact={at}>
      <span className="mono">{exactTime(at)}</span>
    </Instant>
  );
}

interface InstantProps {
  at: string;
  stop: boolean | undefined;
  /** The text on hover, instead of the exact time. */
  exact?: string;
  children: ReactNode;
}

function Instant({ at, stop, exact, children }: InstantProps) {
  // The text on hover is updated when the reader chooses another zone or clock.
  useSetting(timeZone);
  useSetting(dayHours);
  return (
    <time
      dateTime={at}
      title={exact ?? exactTime(at)}
      tabIndex={stop ? 0 : undefined}
      onCopy={(event) => copyUTC(event, at)}
    >
      {children}
    </time>
  );
}

/** Copying an instant that is shown alone, or has the focus, gives it in UTC, in the API's form. */
function copyUTC(event: ClipboardEvent<HTMLTimeElement>, at: string) {
  const selected = window.getSelection()?.toString().trim() ?? "";
  if (selected !== "" && selected !== event.currentTarget.textContent) return;
  event.clipboardData.setData("text/plain", at);
  event.preventDefault();
}
