// Where Node keeps the stripped and compiled sources, by their hash. Reading them anew takes a process of ours two seconds,
// from here half of one, and a test run starts hundreds. So all of them share the place that the run itself uses.
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Absolute, because a process may be started in another folder. */
export const compileCache = resolve(process.env["NODE_COMPILE_CACHE"] ?? join(tmpdir(), "daybook-compile-cache"));
