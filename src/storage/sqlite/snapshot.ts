// Several reads of one moment. A snapshot holds back the WAL's checkpoint, so there are few of them and each lives for
// a few seconds only.
import { afterEither, type Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { render, type Sql } from "../sql.ts";
import { createSlots } from "../slots.ts";
import { endedReader, tooLong, type Reader } from "../store.ts";
import type { ReaderThread } from "./reader.ts";

const lookEveryMs = 20;
const graceMs = 500;

export type Snapshots = { run<T>(read: (reader: Reader) => Promise<T>): Promise<T> };

/** `walIsLarge`: readers that overlap without a gap would keep the WAL from ever beginning anew. */
export function createSnapshots(
  thread: ReaderThread,
  { clock, waitClock }: { readonly clock: Clock; readonly waitClock: Clock },
  walIsLarge: () => boolean,
): Snapshots {
  const slots = createSlots(limits.snapshotsMax);

  // New snapshots wait until those that are open have ended and the writer has begun the WAL anew. If nobody writes, it
  // does not grow either, so there is nothing to wait for.
  async function letWalShrink(): Promise<void> {
    const until = waitClock.monotonic() + limits.snapshotMsMax + graceMs;
    while (walIsLarge() && waitClock.monotonic() < until) await waitClock.sleep(lookEveryMs);
  }

  // SQLite cannot be asked to stop, so a thread that is caught in a statement of this snapshot is left behind: it must not
  // keep everybody else from reading, nor the book from closing. A thread that is busy with others is theirs.
  async function letGo(slot: number, isCaught: () => boolean): Promise<void> {
    const ended = thread.end(slot).then(
      () => true,
      () => true,
    );
    if (!isCaught()) return void (await ended);
    const late = new Promise<false>((resolve) => void afterEither(clock, graceMs, () => resolve(false)));
    if (!(await Promise.race([ended, late]))) thread.abandon();
  }

  return {
    async run(read) {
      if (walIsLarge()) await letWalShrink();
      const slot = await slots.take();
      let open = true;
      let asked = 0;
      let timer: { cancel(): void } | undefined;
      try {
        await thread.begin(slot);
        const expired = new Promise<never>((_, reject) => {
          timer = afterEither(clock, limits.snapshotMsMax, () => reject(tooLong()), { keepAlive: true });
        });
        const reader: Reader = {
          dialect: "sqlite",
          async all<R>(statement: Sql) {
            if (!open) throw endedReader();
            asked++;
            const rows = thread.all(render(statement, "sqlite"), slot).finally(() => asked--);
            return (await Promise.race([rows, expired])) as R[];
          },
        };
        expired.catch(() => undefined);
        return await Promise.race([read(reader), expired]);
      } finally {
        open = false;
        timer?.cancel();
        // Not awaited: the thread may still be in a statement of this snapshot, and whoever asked for it has an answer.
        // The slot is free once the thread has let go of it.
        void letGo(slot, () => asked > 0).finally(() => slots.giveBack(slot));
      }
    },
  };
}
