// runs: what was executed, how it ended, and how it went all in all.
import { look } from "./runs/look.ts";
import { overTime } from "./runs/over-time.ts";
import { pin } from "./runs/pin.ts";

export const runs = { ...look, ...overTime, ...pin };
