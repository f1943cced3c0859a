import { useMatch, useRouter } from "@tanstack/react-router";
import { type RefObject, useLayoutEffect, useRef } from "react";

/** How far pages were scrolled, by the keys of their places in the history. */
const places = new Map<string, number>();

/** For so long, a page may still become as long as it was, and what its address names may still appear. */
const growsMs = 2_000;
const appearsMs = 15_000;

/**
 * For the part of a page that scrolls: a person who goes back to the page finds it where they left it. If they come in another
 * way, it begins at what the address names, or else at its top.
 */
export function useKeptScroll(): RefObject<HTMLDivElement | null> {
  const body = useRef<HTMLDivElement>(null);
  const router = useRouter();
  const path = useMatch({ strict: false, select: ({ pathname }) => pathname });
  useLayoutEffect(() => {
    const element = body.current;
    if (!element) return;
    const key = () => router.latestLocation.state.__TSR_key ?? "";
    const kept = places.get(key());
    const top = kept ?? 0;
    const named = kept === undefined ? router.latestLocation.hash : "";
    let grows = true;
    const grown = new MutationObserver(() => restore());
    const stop = () => {
      grows = false;
      grown.disconnect();
    };
    const restore = () => {
      if (named) {
        const found = element.querySelector(`[id="${CSS.escape(named)}"]`);
        found?.scrollIntoView({ block: "center" });
        if (found) stop();
        return;
      }
      element.scrollTop = top;
      if (element.scrollTop > top - 2) stop();
    };
    const keep = () => {
      // While the next page is being loaded, the place in the history is already that of the next page.
      if (!grows && router.latestLocation.pathname === path) places.set(key(), element.scrollTop);
    };
    grown.observe(element, { childList: true, subtree: true });
    restore();
    const timer = setTimeout(stop, named ? appearsMs : growsMs);
    element.addEventListener("scroll", keep, { passive: true });
    for (const moves of ["wheel", "pointerdown", "keydown"]) element.addEventListener(moves, stop, { passive: true });
    return () => {
      stop();
      clearTimeout(timer);
      element.removeEventListener("scroll", keep);
      for (const moves of ["wheel", "pointerdown", "keydown"]) element.removeEventListener(moves, stop);
    };
  }, [router, path]);
  return body;
}
