// The log of one run: the beginning of what its program said goes into a file, the end stays in memory, and what lies between is
// read and counted. So no program is held up by its own output, and five gigabytes of it cost no more than the limit.
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { describeError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { storableText } from "../../core/quote.ts";

export type LogFile = Awaited<ReturnType<typeof openLog>>;

export type CommandLog = {
  readonly path: string;
  /** All that the program said; the file has the first of it, and the last. */
  readonly bytes: number;
  readonly truncated: boolean;
  readonly tail: string;
};

/** The coarsest clock of a file system in use moves every two seconds. */
const tickMsMax = 2_100;

export async function openLog(path: string, bytesMax: number) {
  // What programs say is for their owner alone.
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, "w", 0o600);
  let [bytes, kept] = [0, 0];
  let tail: Buffer = Buffer.alloc(0);
  let failure: string | null = null;
  let closing: ReturnType<typeof close> | undefined;

  /** The file system's clock: whatever changes a file's entry gives it the time. */
  async function timeNs(): Promise<bigint> {
    await file.chmod(0o600);
    return (await file.stat({ bigint: true })).ctimeNs;
  }

  // A full disk must not stop the program: it did not ask for a log.
  async function keep(chunk: Buffer): Promise<void> {
    if (failure !== null) return;
    try {
      await file.appendFile(chunk);
      kept += chunk.length;
    } catch (error) {
      failure = `its log could not be written: ${describeError(error).message}`;
    }
  }

  async function close(): Promise<{ readonly log: CommandLog; readonly failure: string | null }> {
    const leftOut = bytes - kept;
    const truncated = leftOut > 0;
    if (truncated) {
      const end = tail.subarray(-Math.min(leftOut, limits.commandTailBytesMax));
      await keep(Buffer.from(`\n… ${leftOut} bytes are not kept; the last ${end.length} of them follow\n`));
      await keep(end);
    }
    await file.close().catch(() => undefined);
    return { log: { path, bytes, truncated, tail: tailText(tail) }, failure };
  }

  return {
    /** A time of the file system's clock that no file has yet. That clock stands still for milliseconds at a time, so a
     *  file may have been changed at its present time before the run began. */
    async newTimeNs(clock: Clock, signal: AbortSignal): Promise<bigint> {
      const presentNs = await timeNs();
      for (let waitedMs = 0; ; waitedMs++) {
        const nextNs = await timeNs();
        if (nextNs > presentNs || waitedMs === tickMsMax) return nextNs;
        await clock.sleep(1, signal);
      }
    },
    /** Keeps all that comes, until there is no more; never rejects. */
    async follow(output: AsyncIterable<Buffer>) {
      try {
        for await (const chunk of output) {
          bytes += chunk.length;
          const last = chunk.subarray(-limits.commandTailBytesMax);
          // A copy, because a part of a chunk would hold all of it in memory.
          tail = Buffer.concat([tail, last]).subarray(-limits.commandTailBytesMax);
          if (kept < bytesMax) await keep(chunk.subarray(0, bytesMax - kept));
        }
      } catch (error) {
        failure ??= `its output could not be read to the end: ${describeError(error).message}`;
      }
    },
    /** What there is to say of it, and why the file is not whole, when that is not the limit. */
    close: () => (closing ??= close()),
  };
}

/** Text that can be stored, in the tail's size whatever was in it. */
function tailText(tail: Buffer): string {
  // The first character may have been cut in two; a replacement character in its place says nothing.
  const from = tail.findIndex((byte) => (byte & 0xc0) !== 0x80);
  return storableText(tail.subarray(Math.max(0, from)).toString("utf8"), 3 * limits.commandTailBytesMax);
}

/** What can be told of a log that was not closed; undefined when there is none. */
export async function readEnd(path: string): Promise<CommandLog | undefined> {
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { size: bytes } = await file.stat();
    const end = Buffer.alloc(Math.min(bytes, limits.commandTailBytesMax));
    const { bytesRead } = await file.read(end, 0, end.length, bytes - end.length);
    return { path, bytes, truncated: false, tail: tailText(end.subarray(0, bytesRead)) };
  } catch {
    return undefined;
  } finally {
    await file.close().catch(() => undefined);
  }
}
