import { createContext, type RefObject } from "react";

/** Whether whoever sees the application has come to it from the sign-in, where the focus was. */
export const CameIn = createContext<RefObject<boolean>>({ current: false });
