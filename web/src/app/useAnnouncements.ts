import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { alertCounts } from "../api/alerts";
import { type Announced, announcement, beep, notifications, notify, sound } from "../ui/announce";

/** Announces new alerts outside the page, if the person has enabled that. */
export function useAnnouncements(): void {
  const { data } = useQuery(alertCounts());
  const firing = data?.firing;
  const last = useRef<Announced>(undefined);
  useEffect(() => {
    if (firing === undefined) return;
    let again: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      const { text, seen, againMs } = announcement(last.current, firing, Date.now());
      last.current = seen;
      if (text) tell(text);
      if (againMs !== undefined) again = setTimeout(look, againMs);
    };
    look();
    return () => clearTimeout(again);
  }, [firing]);
}

function tell(text: string) {
  if (sound.current() === "on") beep();
  if (notifications.current() === "on") notify(text);
}
