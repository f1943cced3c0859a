import { useEffect } from "react";

/** The title while somebody signs in. The page behind has its own again afterwards. */
export function useEntranceTitle(title: string): void {
  useEffect(() => {
    const before = document.title;
    document.title = title;
    return () => {
      if (document.title === title) document.title = before;
    };
  }, [title]);
}
