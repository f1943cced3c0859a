import type { QueryClient } from "@tanstack/react-query";
import { accessKeys, beginDisplay } from "../api/access";

/** What is before the token in the address of a wall screen. */
const address = /^#(tcn_[a-z0-9]+)$/;

/** Where a screen is opened that has a token. */
export const wallAddress = (token: string) => `${globalThis.location.origin}/wall#${token}`;

/**
 * Has this browser show pages with the token in the address, if there is one. It leaves the address at once, so that nobody
 * reads it from the screen. What goes wrong leaves the browser as it was, and whoever is not signed in is asked to.
 */
export async function takeDisplayToken(cache: QueryClient): Promise<void> {
  const { pathname, hash } = globalThis.location;
  const token = pathname === "/wall" ? address.exec(hash)?.[1] : undefined;
  if (!token) return;
  globalThis.history.replaceState(globalThis.history.state, "", pathname);
  await beginDisplay(token).catch(() => undefined);
  await cache.invalidateQueries({ queryKey: accessKeys.session });
}
