import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Node's own Temporal, or the polyfill where Node has none (24). It is required, not imported: loading it takes 30 ms,
 * which nobody should pay who has the real one.
 */
export const { Temporal } = "Temporal" in globalThis ? globalThis : (require("temporal-polyfill") as typeof globalThis);
