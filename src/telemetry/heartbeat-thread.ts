// The stand-in for a busy event loop. The main thread stamps the session's beat in its own commits; this thread writes a beat
// only when that stamp is late, so that a process whose loop is blocked or idle for minutes does not look dead.
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../core/clock.ts";
import type { ErrorDescription } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { openSideWriter, type SideTarget, type SideWriter } from "../storage/thread.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import { writeRunBatch, type RunBatch } from "./run-batch.ts";
import { beatStatement, failStatement } from "./session.ts";

export type HeartbeatData = {
  readonly target: SideTarget;
  readonly session: string;
  /** `Float64Array`: [0] monotonic time of the last beat, [1] one when the session was found ended. */
  readonly beats: SharedArrayBuffer;
  /** `Int32Array`: [0] one once the error was written; [1] one once this thread has opened the book, two once it may not. */
  readonly signals: SharedArrayBuffer;
};

export type HeartbeatMessage =
  | { readonly kind: "fail"; readonly error: ErrorDescription; readonly left: readonly RunBatch[] }
  | { readonly kind: "stop" };

const { target, session, beats, signals } = workerData as HeartbeatData;
const beat = new Float64Array(beats);
const signal = new Int32Array(signals);
const lateMs = 3 * limits.beatMs;
const retryMs = 50;
// The main thread's stamp says that a beat is in a transaction, not that the transaction committed: with a disk that refuses
// commits it would stamp for ever and never beat. So now and then this thread beats all the same.
const trustMs = limits.sessionTtlMs / 3;
let beatenAt = systemClock.monotonic();
let writer: Promise<SideWriter> | undefined;
let stopped = false;

async function beatWhenLate(): Promise<void> {
  if (stopped) return;
  const now = systemClock.monotonic();
  if (now - (beat[0] ?? 0) >= lateMs || now - beatenAt >= trustMs) {
    try {
      const changed = await run(beatStatement(session, systemClock.now()));
      beat[0] = beatenAt = systemClock.monotonic();
      if (changed === 0) {
        beat[1] = 1;
        parentPort?.postMessage("lost");
      }
    } catch {
      // The beat is late now, which is the truth. The next try uses a new connection and comes soon: on a crowded file every try
      // counts.
      systemClock.after(retryMs, () => void beatWhenLate());
      return;
    }
  }
  if (!stopped) systemClock.after(limits.beatMs, () => void beatWhenLate());
}

async function run(statement: Sql): Promise<number> {
  try {
    // The main thread has stopped this thread before it opened anything.
    if (Atomics.compareExchange(signal, 1, 0, 1) === 2) return 1;
    writer ??= openSideWriter(target);
    return await (await writer).run(statement);
  } catch (error) {
    await forget();
    throw error;
  }
}

async function forget(): Promise<void> {
  const old = writer;
  writer = undefined;
  await old?.then((open) => open.close()).catch(() => undefined);
}

async function recordFailure(error: ErrorDescription, left: readonly RunBatch[]): Promise<void> {
  const statement = failStatement(session, error, systemClock.now());
  const sqlite = target.dialect === "sqlite";
  // The end of a process waits less long for the file, and for what its own open transactions hold, than a beat does.
  const impatient = rawSql(sqlite ? "pragma busy_timeout = 900" : "set lock_timeout = 900");
  const record = async (): Promise<void> => {
    await run(impatient);
    await run(rawSql(sqlite ? "begin immediate" : "begin"));
    for (const batch of left) await writeRunBatch({ run }, batch);
    await run(statement);
    await run(rawSql("commit"));
  };
  const runs = left.reduce((sum, batch) => sum + batch.runs.length, 0);
  const logs = left.reduce((sum, batch) => sum + batch.logs.length, 0);
  const countThem = async (): Promise<void> => {
    await run(impatient);
    await run(statement);
    await run(sql`update daybook_session set dropped_runs = dropped_runs + ${runs}, dropped_logs = dropped_logs + ${logs}
      where id = ${session}`);
  };
  // The connection may have died while it was idle, so a failure is tried again with a new one. What cannot be written is counted.
  await record()
    .catch(record)
    .catch(countThem)
    .catch(() => undefined);
  // The main thread is blocked until this, and then lets the process end.
  Atomics.store(signal, 0, 1);
  Atomics.notify(signal, 0);
}

parentPort?.on("message", (message: HeartbeatMessage) => {
  stopped = true;
  if (message.kind === "fail") void recordFailure(message.error, message.left);
  else void forget().then(() => parentPort?.close());
});
void beatWhenLate();
