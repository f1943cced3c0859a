import type { QueryClient } from "@tanstack/react-query";
import { me, session } from "../api/access";
import type { LazyPage } from "./chunk/lazyPage";
import type { createAppRouter } from "./router";

/**
 * Asks at once for what the page at an address needs in any case, and all of it at the same time: its code, whether
 * somebody is signed in, and then who, and what the page shows. The page then asks for the same and finds it under way;
 * what fails here is shown there.
 */
export function beginEarly(cache: QueryClient, router: ReturnType<typeof createAppRouter>, path: string) {
  const [matched, params] = router.getMatchedRoutes(path);
  const pages = matched.flatMap(({ options }) => (options.component as Partial<LazyPage> | undefined) ?? []);
  for (const { preload } of pages) void preload?.()?.catch(() => undefined);
  void cache
    .fetchQuery(session())
    .then(({ signedIn }) => {
      if (!signedIn) return;
      void cache.prefetchQuery(me());
      for (const { ask } of pages) void ask?.(cache, params);
    })
    .catch(() => undefined);
}
