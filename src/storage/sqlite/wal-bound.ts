// The WAL begins anew only when no read is left that began before its last commit. So above its bound new reads wait, and
// those are ended that have been under way for long: at any speed of writing it grows by what comes in about a second.
import { systemClock, type Timer } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { ReadTurns } from "../read-turns.ts";
import type { Reading } from "../reading.ts";

const lookEveryMs = 50;

export type WalBound = {
  /** Resolves once a new read does not keep the WAL from beginning anew, or soon after. */
  pass(): Promise<void>;
  /** Looks after the reads that have begun. */
  watch(): void;
};

/** `mayHelp`: whether it is reads of ours that the WAL waits for, and not a backup, which may take as long as it takes. */
export function createWalBound(
  walBytes: () => number,
  turns: readonly ReadTurns[],
  mayHelp: () => boolean = () => true,
): WalBound {
  let timer: Timer | undefined;
  let lastBytes = walBytes();
  let grewAtMs = Number.NEGATIVE_INFINITY;

  // A file that is large and does not grow is written over from its beginning, or not at all: then nothing is gained by waiting,
  // and a read that began after it had grown is not to blame.
  function isGrowing(): boolean {
    const bytes = walBytes();
    const grew = bytes > lastBytes && bytes > limits.walBytesMax && mayHelp();
    lastBytes = bytes;
    if (grew) grewAtMs = systemClock.monotonic();
    return grew;
  }
  function look(): void {
    timer = undefined;
    if (turns.every((each) => each.running === 0)) return;
    isGrowing();
    if (lastBytes > limits.walBytesMax) {
      for (const each of turns) each.endLongerThan(limits.walHeldMs, grewAtMs, heldTooLong);
    }
    timer = systemClock.after(lookEveryMs, look);
  }
  return {
    async pass() {
      const until = systemClock.monotonic() + limits.walHeldMs + lookEveryMs;
      while (isGrowing() && systemClock.monotonic() < until) await systemClock.sleep(lookEveryMs);
    },
    watch: () => void (timer ??= systemClock.after(lookEveryMs, look)),
  };
}

function heldTooLong({ verb, tenant }: Reading): DaybookError {
  const mb = limits.walBytesMax / 1_048_576;
  return new DaybookError(
    "busy",
    `${verb} was ended, because it kept the write-ahead log from being cut back and that has grown past ${mb} MB: ` +
      "try again when less is written, or read less at once",
    { details: { verb, tenant } },
  );
}
