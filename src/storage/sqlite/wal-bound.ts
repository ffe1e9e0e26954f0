// The WAL begins anew only when no read is left that began before its last commit. So above its bound new reads wait, and
// those are ended that have been under way for long: at any speed of writing it grows by what comes in about a second.
import { systemClock, type Timer } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import type { ReadTurns } from "../read-turns.ts";
import type { Reading } from "../reading.ts";

const lookEveryMs = 50;

export type WalBound = {
  /** Resolves once a new read keeps nobody from beginning the WAL anew. If nobody writes, it does not grow either, so
   *  there is not much to wait for. */
  pass(): Promise<void>;
  /** Looks after the reads that have begun. */
  watch(): void;
};

export function createWalBound(isLarge: () => boolean, turns: readonly ReadTurns[]): WalBound {
  let timer: Timer | undefined;
  function look(): void {
    timer = undefined;
    if (turns.every((each) => each.running === 0)) return;
    if (isLarge()) for (const each of turns) each.endLongerThan(limits.walHeldMs, heldTooLong);
    timer = systemClock.after(lookEveryMs, look);
  }
  return {
    async pass() {
      const until = systemClock.monotonic() + limits.walHeldMs + lookEveryMs;
      while (isLarge() && systemClock.monotonic() < until) await systemClock.sleep(lookEveryMs);
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
