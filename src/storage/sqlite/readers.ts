// The readers of one book. Each serves one read at a time, so whoever has to be ended takes nobody along; they start
// when they are needed and end when they are not for a while. A slow read lets every other process come first, and its
// tenant keeps that reader for what it asks for next: neither its reads nor the start of a reader for them, after one had to
// be ended, take a processor from others.
import { systemClock, type Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { ReaderData } from "./reader-program.ts";
import { createReader, type Answered, type SqliteReader } from "./reader.ts";

export type Readers = {
  /** Runs one statement. A reader that ended by itself, or by the system's hand, is no reason to fail: another is asked. */
  ask(tenant: string, signal: AbortSignal, statement: Work<Answered>): Promise<Answered>;
  /** Runs `work` with a reader of its own, and with another if that ends before its first answer. When the signal aborts, the
   *  reader is ended. */
  use<T>(tenant: string, signal: AbortSignal, work: (reader: SqliteReader) => Promise<T>): Promise<T>;
  /** Resolves once no reader holds the file. */
  close(): Promise<void>;
};

/** More tenants than these with slow reads are not remembered; the oldest is forgotten. */
const patientMax = 1000;

type Work<T> = (reader: SqliteReader) => Promise<T>;

export function createReaders(data: ReaderData, where: "process" | "thread"): Readers {
  // The one that was used last is taken first, so that the others may rest and end. Whoever has let others come first does so
  // for the rest of its life, and serves the tenant whose read was slow.
  const idle = new Map<SqliteReader, { readonly timer: Timer; readonly only: string | null }>();
  const dying = new Set<Promise<void>>();
  let busy = 0;
  /** How many reads of a tenant still run where others come first. */
  const patient = new Map<string, number>();

  function kill(reader: SqliteReader): void {
    const ended = reader.kill().finally(() => dying.delete(ended));
    dying.add(ended);
  }

  function take(tenant: string): SqliteReader {
    const only = patient.has(tenant) ? tenant : null;
    for (const [reader, rest] of [...idle].toReversed()) {
      if (reader.alive && rest.only !== only) continue;
      rest.timer.cancel();
      idle.delete(reader);
      if (reader.alive) return reader;
    }
    makeRoom();
    const reader = createReader(data, where);
    if (only !== null) reader.yield();
    return reader;
  }
  function makeRoom(): void {
    if (busy + idle.size < limits.readsMax + limits.snapshotsMax) return;
    const [first] = idle;
    const [reader] = [...idle].find(([, { only }]) => only !== null) ?? first ?? [];
    if (reader !== undefined) end(reader);
  }
  function rest(reader: SqliteReader, tenant: string): void {
    const timer = systemClock.after(limits.readerIdleMs, () => end(reader));
    idle.set(reader, { timer, only: reader.yielded ? tenant : null });
  }
  function end(reader: SqliteReader): void {
    idle.get(reader)?.timer.cancel();
    idle.delete(reader);
    kill(reader);
  }
  /** Whoever asked for a slow read asks for the next ones as well. */
  function remember(tenant: string, slow: boolean): void {
    const left = slow ? limits.readsPatient : (patient.get(tenant) ?? 0) - 1;
    patient.delete(tenant);
    if (left > 0) patient.set(tenant, left);
    if (patient.size > patientMax) patient.delete(patient.keys().next().value ?? "");
  }

  async function run<T>(tenant: string, signal: AbortSignal, work: Work<T>, reader = take(tenant)): Promise<T> {
    busy++;
    const killed = (): void => kill(reader);
    signal.addEventListener("abort", killed, { once: true });
    const pace = watchPace(reader);
    try {
      return await work(reader);
    } finally {
      busy--;
      pace.stop();
      signal.removeEventListener("abort", killed);
      remember(tenant, pace.isSlow || !reader.alive);
      if (reader.alive) rest(reader, tenant);
      else kill(reader);
    }
  }
  /** `again`: whether the work may be given to another reader after this one has ended. */
  async function runSurely<T>(
    tenant: string,
    signal: AbortSignal,
    work: Work<T>,
    again: (reader: SqliteReader) => boolean,
  ): Promise<T> {
    signal.throwIfAborted();
    const reader = take(tenant);
    try {
      return await run(tenant, signal, work, reader);
    } catch (error) {
      if (signal.aborted || reader.alive || !again(reader)) throw error;
      return run(tenant, signal, work);
    }
  }

  return {
    // A signal to all processes of a terminal ends one that has just been started, and that has answered nothing yet.
    use: (tenant, signal, work) => runSurely(tenant, signal, work, (reader) => !reader.started),
    ask: (tenant, signal, statement) => runSurely(tenant, signal, statement, () => true),
    async close() {
      for (const reader of [...idle.keys()]) end(reader);
      await Promise.all(dying);
    },
  };
}

type Pace = { stop(): void; readonly isSlow: boolean };

/** Of a system that does not say who had a processor, so many looks tell a slow read. */
const looksMax = 10;

/** Lets the others come first once the read has had a processor for long. What it waits for a processor, or for the reader to
 *  start, is not the read's: on a busy machine quick reads must not become slow ones. */
function watchPace(reader: SqliteReader): Pace {
  let isSlow = false;
  let looks = 0;
  let countedFromMs: number | undefined;
  let timer = systemClock.after(limits.readYieldMs, look);

  function look(): void {
    isSlow ||= reader.started && hasBeenLong();
    if (isSlow) reader.yield();
    else timer = systemClock.after(limits.readYieldMs, look);
  }
  // The system is asked for the first time when the read is no quick one any more.
  function hasBeenLong(): boolean {
    const nowMs = reader.busyMs();
    if (nowMs === null) return ++looks >= looksMax;
    countedFromMs ??= nowMs;
    return nowMs - countedFromMs >= limits.readYieldMs;
  }
  return {
    stop: () => timer.cancel(),
    get isSlow() {
      return isSlow;
    },
  };
}
