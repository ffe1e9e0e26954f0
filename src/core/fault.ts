import { invalid } from "./error.ts";

// Read once: a kill point sits on hot paths, and reading the environment is slow.
const crash = parseCrash(process.env["DAYBOOK_CRASH_AT"]);

/**
 * A named place where crash tests end the process as a power failure would: `DAYBOOK_CRASH_AT=commit.before:3` kills it
 * on the third pass of that name in a thread. It does nothing when the variable was not set at the start.
 */
export function killPoint(name: string): void {
  if (crash === undefined || crash.name !== name) return;
  crash.passesLeft -= 1;
  if (crash.passesLeft > 0) return;
  process.kill(process.pid, "SIGKILL");
  // The signal may arrive a moment later; nothing after this point may run until then.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

function parseCrash(text: string | undefined): { name: string; passesLeft: number } | undefined {
  if (text === undefined || text === "") return undefined;
  const [, name, passes] = /^(.+):([1-9]\d*)$/.exec(text) ?? [];
  // A crash test that silently does not crash would pass for the wrong reason.
  if (name === undefined) throw invalid(`DAYBOOK_CRASH_AT is ${JSON.stringify(text)}; write it as name:n, n from 1`);
  return { name, passesLeft: Number(passes) };
}
