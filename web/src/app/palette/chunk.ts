import { Chunk } from "../chunk/chunk";

/** The palette's code, which comes when it is first asked for. */
export const paletteChunk = new Chunk(async () => (await import("./CommandPalette")).CommandPalette);
