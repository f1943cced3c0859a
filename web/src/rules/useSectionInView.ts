import { useEffect, useState } from "react";
import { sections } from "./sections";

/** The first visible part of the page; undefined before one is visible. */
export function useSectionInView(): string | undefined {
  const [current, setCurrent] = useState<string>();
  useEffect(() => {
    const seen = new Set<string>();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const name = (target as HTMLElement).dataset.section ?? "";
          if (isIntersecting) seen.add(name);
          else seen.delete(name);
        }
        setCurrent(sections.find(({ name }) => seen.has(name))?.name);
      },
      // A section that is only just visible at the bottom is not the one that people read.
      { rootMargin: "-10% 0px -45% 0px" },
    );
    for (const { name } of sections) {
      const section = document.querySelector(`[data-section="${name}"]`);
      if (section) observer.observe(section);
    }
    return () => observer.disconnect();
  }, []);
  return current;
}
