import { Chunk } from "../chunk/chunk";

/** The palette's code, which is loaded when it is first needed. */
export const paletteChunk = new Chunk(async () => (await import("./CommandPalette")).CommandPalette);
