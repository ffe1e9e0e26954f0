// SIGINT and SIGTERM ask a command to end: what it has open is closed first, and the exit code says which signal it was.
import { systemClock } from "../core/clock.ts";

const signals = { SIGINT: 130, SIGTERM: 143 } as const;
type SignalName = keyof typeof signals;

export type Stop = {
  readonly signal: AbortSignal;
  /** Resolves once a signal has come. */
  readonly asked: Promise<undefined>;
  /** Ends the process with the exit code of the signal. */
  leave(working: Promise<unknown> | undefined): Promise<void>;
  release(): void;
};

/** How long a command that was asked to end may take to notice. */
const settleMsMax = 500;

export function listenForSignals(): Stop {
  const controller = new AbortController();
  const { promise: asked, resolve } = Promise.withResolvers<undefined>();
  let came: SignalName = "SIGTERM";
  const hear = (name: NodeJS.Signals): void => {
    came = name === "SIGINT" ? "SIGINT" : "SIGTERM";
    // From here on a second signal does what signals do: a person who presses twice wants out at once.
    release();
    controller.abort();
    resolve(undefined);
  };
  const release = (): void => {
    for (const name of Object.keys(signals)) process.off(name, hear);
  };
  for (const name of Object.keys(signals)) process.on(name, hear);

  return {
    signal: controller.signal,
    asked,
    release,
    async leave(working) {
      const settled = Promise.resolve(working).then(
        () => true,
        () => true,
      );
      const idle = await Promise.race([settled, systemClock.sleep(settleMsMax).then(() => false)]);
      // process.exit() waits for a thread that is inside a long statement (a backup); the signal itself does not.
      if (!idle) process.kill(process.pid, came);
      process.exit(signals[came]);
    },
  };
}
