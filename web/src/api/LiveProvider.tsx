import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { onComeback } from "./comeback";
import { follow } from "./follow";
import type { Live } from "./live";

const LiveContext = createContext<Live | undefined>(undefined);

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (!live) throw new Error("useLive must be used within LiveProvider");
  return live;
}

/** A browser opens few connections to one host, so a page that nobody looks at closes its own after a while. */
const hiddenPauseMs = 60_000;

/** Follows the events while the page is visible. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const cache = useQueryClient();
  const [live] = useState(() => follow(cache));
  useEffect(() => {
    let pause: ReturnType<typeof setTimeout> | undefined;
    const onVisibility = () => {
      clearTimeout(pause);
      if (document.hidden) {
        pause = setTimeout(() => live.stop(), hiddenPauseMs);
      } else {
        live.start();
        live.nudge();
      }
    };
    const onOnline = () => live.nudge();
    const endComeback = onComeback(cache, () => live.nudge());
    live.start();
    document.addEventListener("visibilitychange", onVisibility);
    window.addEventListener("online", onOnline);
    return () => {
      clearTimeout(pause);
      endComeback();
      document.removeEventListener("visibilitychange", onVisibility);
      window.removeEventListener("online", onOnline);
      live.stop();
    };
  }, [cache, live]);
  return <LiveContext value={live}>{children}</LiveContext>;
}
