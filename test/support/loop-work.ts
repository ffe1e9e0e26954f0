// The most that this thread's loop works in one piece, in processor time: what a caller of another verb waits for. Time that passed
// would also count what the thread waited for a processor, and on a busy machine that is most of it.
import { systemClock } from "../../src/core/clock.ts";

export const pieceMsMax = 50;

/** Does the work, and says how long its longest piece was: what lies between two looks is at least one turn of the loop. */
export async function longestPieceMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let at = workedMs();
  const look = (): void => {
    const now = workedMs();
    longest = Math.max(longest, now - at);
    at = now;
  };
  const timer = setInterval(look, 1);
  try {
    await systemClock.sleep(3);
    look();
    longest = 0;
    await work();
    await systemClock.sleep(3); // the look that sees the last turn
  } finally {
    clearInterval(timer);
  }
  return Math.round(longest * 10) / 10;
}

/** How long this thread has had a processor. */
export function workedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
