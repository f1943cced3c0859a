import { useRouter } from "@tanstack/react-router";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import { CameIn } from "./cameIn";

interface Arrival {
  /** Whether the reader came to the page from another page or from the sign-in, and did not load it. */
  moved: () => boolean;
  say: (title: string) => void;
}

const ArrivalContext = createContext<Arrival>({ moved: () => false, say: () => {} });

/** Lets pages announce where the reader has arrived, which people who do not see the screen would not notice. */
export function ArrivalProvider({ children }: { children: ReactNode }) {
  const router = useRouter();
  const [said, setSaid] = useState("");
  const moved = useRef(false);
  const cameIn = useContext(CameIn);
  useEffect(
    () =>
      router.subscribe("onBeforeNavigate", ({ fromLocation, pathChanged }) => {
        if (fromLocation && pathChanged) moved.current = true;
      }),
    [router],
  );
  const [arrival] = useState<Arrival>(() => ({ moved: () => moved.current || cameIn.current, say: setSaid }));
  return (
    <ArrivalContext value={arrival}>
      {children}
      <p className="visually-hidden" role="status" aria-label="Page">
        {said}
      </p>
    </ArrivalContext>
  );
}

/**
 * For the title of a page. If a person followed a link that is gone with the previous page, the
 * title gets the focus, and they continue from there. If the focus stays where it was, as with a
 * link in the rail, the title is announced.
 */
export function useArrival(title: string) {
  const { moved, say } = useContext(ArrivalContext);
  const heading = useRef<HTMLHeadingElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a title that changes is no arrival.
  useEffect(() => {
    if (!moved()) return;
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
    else say(title);
  }, []);
  return heading;
}
