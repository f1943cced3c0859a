import { type CSSProperties, useEffect, useLayoutEffect, useState } from "react";
import styles from "./ExactTip.module.css";
import { useNow } from "./now";
import { exactTime } from "./time";

const id = "exact-times";
/** So that it does not show when the focus only passes on its way to another row. */
const restMs = 600;

interface Tip {
  times: readonly HTMLTimeElement[];
  /** Undefined until it is visible; screen readers get it at once. */
  place?: CSSProperties;
}

/**
 * Shows the exact instants at the keyboard focus: of a time itself, or of the row that has the
 * focus. With the mouse, the title of each time shows them.
 */
export function ExactTip() {
  const [tip, setTip] = useState<Tip>();
  useEffect(() => {
    let rest: ReturnType<typeof setTimeout> | undefined;
    const hide = () => {
      clearTimeout(rest);
      setTip(undefined);
    };
    const onFocus = ({ target }: FocusEvent) => {
      hide();
      if (!(target instanceof HTMLElement) || !target.matches(":focus-visible")) return;
      const times = timesOf(target);
      const last = times.at(-1);
      if (!last) return;
      setTip({ times });
      if (!target.hasAttribute("aria-describedby")) target.setAttribute("aria-describedby", id);
      // What had the focus may have left the page meanwhile, which not every browser reports.
      rest = setTimeout(
        () => (last.isConnected ? setTip({ times, place: beside(last) }) : hide()),
        target === last ? 0 : restMs,
      );
    };
    const onBlur = ({ target }: FocusEvent) => {
      hide();
      if (target instanceof Element && target.getAttribute("aria-describedby") === id) {
        target.removeAttribute("aria-describedby");
      }
    };
    const onKey = ({ key }: KeyboardEvent) => {
      if (key === "Escape") hide();
    };
    // The element next to it moves away.
    const onScroll = () => setTip((shown) => (shown?.place ? undefined : shown));
    document.addEventListener("focusin", onFocus);
    document.addEventListener("focusout", onBlur);
    document.addEventListener("keydown", onKey);
    document.addEventListener("scroll", onScroll, true);
    return () => {
      clearTimeout(rest);
      document.removeEventListener("focusin", onFocus);
      document.removeEventListener("focusout", onBlur);
      document.removeEventListener("keydown", onKey);
      document.removeEventListener("scroll", onScroll, true);
    };
  }, []);
  return (
    <div id={id} role="tooltip" className={styles.tip} style={tip?.place} hidden={!tip?.place}>
      {tip && <Lines times={tip.times} />}
    </div>
  );
}

/** The page's text for an instant changes, and so does this: it is read after the page was rendered. */
function Lines({ times }: Pick<Tip, "times">) {
  const now = useNow();
  const [lines, setLines] = useState<readonly string[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: with each second the page says something else.
  useLayoutEffect(() => setLines(linesOf(times)), [times, now]);
  return lines.map((line) => <p key={line}>{line}</p>);
}

function timesOf(focused: HTMLElement): readonly HTMLTimeElement[] {
  if (focused instanceof HTMLTimeElement) return [focused];
  const row = focused.closest("tr, li, summary");
  return [...(row?.querySelectorAll("time") ?? [])];
}

/** For several instants, each with the page's text; for one, only the exact instant. */
function linesOf(times: readonly HTMLTimeElement[]): readonly string[] {
  const said = new Map(times.map(({ dateTime, textContent }) => [dateTime, textContent ?? ""]));
  if (said.size === 1) return [...said.keys()].map(exactTime);
  return [...said].map(([at, text]) => `${text}: ${exactTime(at)}`);
}

const gap = 6;

/** Below the element, or above if there is no room; it extends towards the middle of the window. */
function beside(time: Element): CSSProperties {
  const { left, right, top, bottom } = time.getBoundingClientRect();
  const { innerWidth, innerHeight } = window;
  return {
    ...(left + right > innerWidth ? { right: innerWidth - right } : { left }),
    ...(bottom > innerHeight * 0.8 ? { bottom: innerHeight - top + gap } : { top: bottom + gap }),
  };
}
