// Moments that have a name: a fact tells its listeners of one, and at a kill point a crash test ends the process.
import { channel } from "node:diagnostics_channel";
import { invalid, warnOf } from "./error.ts";

/** Something that happened, with a name and fields. Rooms state facts; logs, metrics and tests hear them. */
export type Fact<Fields> = {
  readonly name: string;
  state(fields: Fields): void;
  /** Returns the function that ends the subscription. */
  subscribe(hear: (fields: Fields) => void): () => void;
  /** Whether anyone listens: ask before building fields that cost something. */
  readonly heard: boolean;
};

/**
 * A fact travels on the diagnostics channel `daybook:<name>`, so tools that know nothing of us can listen too, and
 * stating a fact that nobody hears costs one property read.
 */
export function defineFact<Fields extends object>(name: string): Fact<Fields> {
  const on = channel(`daybook:${name}`);
  return {
    name,
    get heard() {
      return on.hasSubscribers;
    },
    state(fields) {
      if (on.hasSubscribers) on.publish(fields);
    },
    subscribe(hear) {
      const safely = shielded(name, hear);
      on.subscribe(safely);
      return () => {
        on.unsubscribe(safely);
      };
    },
  };
}

/**
 * Telemetry never stops work: by default the channel turns a listener's exception into an uncaught one, which ends the
 * process. A failing listener warns once, since one that fails on every job would otherwise flood the log.
 */
function shielded<Fields>(name: string, hear: (fields: Fields) => void): (message: unknown) => void {
  let warned = false;
  const warn = (error: unknown): void => {
    if (warned) return;
    warned = true;
    warnOf("DAYBOOK_FACT_LISTENER", `a listener of the fact "${name}" failed (further failures are not shown)`, error);
  };
  return (message) => {
    try {
      // The channel is named after the fact and only `state` publishes to it, so the fields have the fact's type.
      const result: unknown = hear(message as Fields);
      if (result instanceof Promise) result.catch(warn);
    } catch (error) {
      warn(error);
    }
  };
}

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
