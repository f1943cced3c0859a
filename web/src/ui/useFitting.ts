import { type RefObject, useLayoutEffect, useState } from "react";

/** How many children of an element are seen in full, at least one, as its size and their number change. */
export function useFitting(of: RefObject<HTMLElement | null>, children: number): number {
  const [fitting, setFitting] = useState(children);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the element exists once it has children.
  useLayoutEffect(() => {
    const element = of.current;
    if (!element) return;
    const measure = () => {
      const seen = [...element.children].filter(
        (child) => child instanceof HTMLElement && child.offsetTop + child.offsetHeight <= element.clientHeight,
      );
      setFitting(Math.max(1, seen.length));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [of, children]);
  return Math.min(fitting, children);
}
