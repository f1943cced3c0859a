import type { QueryClient } from "@tanstack/react-query";
import { me, session } from "../api/access";
import type { LazyPage } from "./chunk/lazyPage";
import type { createAppRouter } from "./router";

/**
 * Requests at once what the page at an address needs in any case: its code, whether somebody is
 * signed in and who, and what the page shows. When the page requests the same, it is already under
 * way. Errors are shown by the page.
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
