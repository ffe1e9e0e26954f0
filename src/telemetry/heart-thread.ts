// The stand-in for a busy event loop. The main thread stamps the session's beat in its own commits; this thread writes
// only when that stamp is late, so that a loop that is blocked or idle for minutes does not look dead.
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import { openSideWriter, type SideTarget, type SideWriter } from "../storage/side-writer.ts";
import { beatStatement, failStatement, type SessionError } from "./session.ts";

export type HeartData = {
  readonly target: SideTarget;
  readonly session: string;
  /** `Float64Array`: [0] monotonic time of the last beat, [1] one when the session was found ended. */
  readonly beats: SharedArrayBuffer;
  /** `Int32Array`: [0] one once the error was written. */
  readonly signals: SharedArrayBuffer;
};

export type HeartMessage = { kind: "fail"; error: SessionError } | { kind: "stop" };

const { target, session, beats, signals } = workerData as HeartData;
const beat = new Float64Array(beats);
const signal = new Int32Array(signals);
const lateMs = 3 * limits.beatMs;
let writer: SideWriter | undefined;
let stopped = false;

async function beatWhenLate(): Promise<void> {
  if (stopped) return;
  if (systemClock.monotonic() - (beat[0] ?? 0) >= lateMs) {
    try {
      writer ??= await openSideWriter(target);
      const changed = await writer.run(beatStatement(session, systemClock.now()));
      beat[0] = systemClock.monotonic();
      if (changed === 0) beat[1] = 1;
    } catch {
      // A beat that could not be written is late, which is the truth; the next turn tries with a new connection.
      await forget();
    }
  }
  if (!stopped) systemClock.after(limits.beatMs, () => void beatWhenLate());
}

async function forget(): Promise<void> {
  const old = writer;
  writer = undefined;
  await old?.close().catch(() => undefined);
}

async function recordFailure(error: SessionError): Promise<void> {
  try {
    writer ??= await openSideWriter(target);
    await writer.run(failStatement(session, error, systemClock.now()));
  } catch {
    await forget();
  } finally {
    // The main thread waits for this, blocked, and then lets the process end.
    Atomics.store(signal, 0, 1);
    Atomics.notify(signal, 0);
  }
}

parentPort?.on("message", (message: HeartMessage) => {
  stopped = true;
  if (message.kind === "fail") void recordFailure(message.error);
  else void forget().then(() => parentPort?.close());
});
void beatWhenLate();
