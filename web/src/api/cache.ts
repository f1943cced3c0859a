import { QueryClient } from "@tanstack/react-query";
import { isKnownAway } from "./comeback";
import { isPassing } from "./errors";
import { firstVersionKey } from "./status";

/** The one place where server state is kept. What is on screen is refreshed by events or by polls, not by mounting. */
export function createCache(): QueryClient {
  const cache: QueryClient = new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        // What fails while Tocsin is away says so at once, and is asked again when it is back.
        retry: (count, error) => count < 2 && isPassing(error) && !isKnownAway(cache),
        // The browser's notion of being offline is wrong on a laptop that reaches Tocsin by a cable or a tunnel.
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
  // It cannot be asked for again.
  cache.setQueryDefaults(firstVersionKey, { gcTime: Number.POSITIVE_INFINITY, staleTime: Number.POSITIVE_INFINITY });
  return cache;
}
