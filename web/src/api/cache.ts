import { QueryClient } from "@tanstack/react-query";
import { isKnownAway } from "./comeback";
import { isPassing } from "./errors";
import { firstVersionKey } from "./status";

/** The only place for server state. Events and polls refresh what is on screen; mounting does not. */
export function createCache(): QueryClient {
  const cache: QueryClient = new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        // A query that fails while Tocsin is away shows this at once, and is repeated when Tocsin
        // is back.
        retry: (count, error) => count < 2 && isPassing(error) && !isKnownAway(cache),
        // The browser may think that it is offline when it is not, for example on a laptop that
        // reaches Tocsin by a cable or a tunnel.
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
  // It cannot be requested again.
  cache.setQueryDefaults(firstVersionKey, { gcTime: Number.POSITIVE_INFINITY, staleTime: Number.POSITIVE_INFINITY });
  return cache;
}
