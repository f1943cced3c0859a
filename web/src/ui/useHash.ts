import { useLocation } from "@tanstack/react-router";

/**
 * What the address names after its #, which is the current row of a list. The browser itself only knows it for a page that was
 * loaded at that address.
 */
export const useHash = (): string => useLocation({ select: ({ hash }) => hash });
