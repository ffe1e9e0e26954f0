// Several reads of one moment. A snapshot holds back the WAL's checkpoint, so there are few of them and each lives for
// a few seconds only.
import type { Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { render, type Sql } from "../sql.ts";
import { endedReader, tooLong, type Reader } from "../store.ts";
import type { ReaderThread } from "./reader.ts";

export type Snapshots = { run<T>(read: (reader: Reader) => Promise<T>): Promise<T> };

export function createSnapshots(thread: ReaderThread, clock: Clock): Snapshots {
  const free = Array.from({ length: limits.snapshotsMax }, (_, index) => index);
  const inLine: ((slot: number) => void)[] = [];

  const take = async (): Promise<number> => free.pop() ?? new Promise<number>((resolve) => inLine.push(resolve));
  function giveBack(slot: number): void {
    const next = inLine.shift();
    if (next === undefined) free.push(slot);
    else next(slot);
  }

  return {
    async run(read) {
      const slot = await take();
      let open = true;
      let timer: { cancel(): void } | undefined;
      try {
        await thread.begin(slot);
        const expired = new Promise<never>((_, reject) => {
          timer = clock.after(limits.snapshotMsMax, () => reject(tooLong()), { keepAlive: true });
        });
        const reader: Reader = {
          dialect: "sqlite",
          async all<R>(statement: Sql) {
            if (!open) throw endedReader();
            return (await Promise.race([thread.all(render(statement, "sqlite"), slot), expired])) as R[];
          },
        };
        expired.catch(() => undefined);
        return await Promise.race([read(reader), expired]);
      } finally {
        open = false;
        timer?.cancel();
        await thread.end(slot).finally(() => giveBack(slot));
      }
    },
  };
}
