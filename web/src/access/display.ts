import type { QueryClient } from "@tanstack/react-query";
import { accessKeys, beginDisplay } from "../api/access";

/** The part before the token in the address of a wall screen. */
const address = /^#(tcn_[a-z0-9]+)$/;

/** The address at which a screen with a token is opened. */
export const wallAddress = (token: string) => `${globalThis.location.origin}/wall#${token}`;

/**
 * Makes this browser show pages with the token in the address, if there is one. The token is
 * removed from the address at once, so that nobody can read it from the screen. If this fails, the
 * browser stays as it was, and people who are not signed in are asked to sign in.
 */
export async function takeDisplayToken(cache: QueryClient): Promise<void> {
  const { pathname, hash } = globalThis.location;
  const token = pathname === "/wall" ? address.exec(hash)?.[1] : undefined;
  if (!token) return;
  globalThis.history.replaceState(globalThis.history.state, "", pathname);
  await beginDisplay(token).catch(() => undefined);
  await cache.invalidateQueries({ queryKey: accessKeys.session });
}
