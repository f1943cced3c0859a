import { createContext, type RefObject } from "react";

/** Whether the reader came to the application from the sign-in, which had the focus. */
export const CameIn = createContext<RefObject<boolean>>({ current: false });
