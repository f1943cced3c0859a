import type { QueryClient } from "@tanstack/react-query";
import { me, session } from "../api/access";
import type { createAppRouter } from "./router";

/**
 * Asks at once for what the page at an address needs in any case, and all of it at the same time: its code, whether
 * somebody is signed in, and who. The page then asks for the same and finds it under way; what fails here is told there.
 */
export function beginEarly(cache: QueryClient, router: ReturnType<typeof createAppRouter>, path: string) {
  void cache
    .fetchQuery(session())
    .then(({ signedIn }) => (signedIn ? cache.prefetchQuery(me()) : undefined))
    .catch(() => undefined);
  const [matched] = router.getMatchedRoutes(path);
  for (const { options } of matched) {
    const { component } = options as { component?: { preload?: () => Promise<unknown> | undefined } };
    void component?.preload?.()?.catch(() => undefined);
  }
}
