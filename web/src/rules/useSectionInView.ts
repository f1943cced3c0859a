import { useEffect, useState } from "react";
import { sections } from "./sections";

const sectionOf = (name: string) => document.querySelector<HTMLElement>(`[data-section="${name}"]`);

/**
 * The first visible part of the page; undefined before one is visible. At the end of the page, the last parts cannot come
 * to its top: there it is the one that people went to, or else the last.
 */
export function useSectionInView(): string | undefined {
  const [current, setCurrent] = useState<string>();
  useEffect(() => {
    const seen = new Set<string>();
    const look = () => {
      const first = sections.find(({ name }) => seen.has(name))?.name;
      setCurrent(endsHere() ? (sections.find(({ name }) => isAt(name))?.name ?? sections.at(-1)?.name) : first);
    };
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const name = (target as HTMLElement).dataset.section ?? "";
          if (isIntersecting) seen.add(name);
          else seen.delete(name);
        }
        look();
      },
      // A section that is only just visible at the bottom is not the one that people read.
      { rootMargin: "-10% 0px -45% 0px" },
    );
    for (const { name } of sections) {
      const section = sectionOf(name);
      if (section) observer.observe(section);
    }
    // The part that scrolls is not the document, and its events do not bubble.
    document.addEventListener("scroll", look, { capture: true, passive: true });
    document.addEventListener("focusin", look);
    return () => {
      observer.disconnect();
      document.removeEventListener("scroll", look, { capture: true });
      document.removeEventListener("focusin", look);
    };
  }, []);
  return current;
}

/** Whether the page has been scrolled to its end. */
function endsHere(): boolean {
  let at = sectionOf(sections[0].name)?.parentElement ?? null;
  while (at?.scrollTop === 0) at = at.parentElement;
  return at !== null && at.scrollTop + at.clientHeight >= at.scrollHeight - 1;
}

/** Whether the focus is in a section of which the beginning is visible. */
function isAt(name: string): boolean {
  const section = sectionOf(name);
  return section?.contains(document.activeElement) === true && section.getBoundingClientRect().top > 0;
}
