import { createContext } from "react";

/** Whether the page is shown. It is not while it waits behind the sign-in. */
export const PageShown = createContext(true);
