// The session's heartbeat. On the system clock a thread beats when the event loop does not; on any other clock (tests, the
// simulation) a timer of that clock does, because a thread does not share their time.
import { systemClock, type Timer } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { startThread } from "../storage/thread.ts";
import { skipLocked } from "../storage/word.ts";
import type { HeartbeatData, HeartbeatMessage } from "./heartbeat-thread.ts";
import { beatStatement, type SessionError } from "./session.ts";

export type Heartbeat = {
  /** True while the last written beat is so old that other sessions may soon end this one, or after a beat found that they did. */
  readonly overdue: boolean;
  /** Writes the error and blocks until it is written, because the process is about to end. */
  fail(error: SessionError): void;
  stop(): Promise<void>;
};

const failMsMax = 5000;
/** A transaction that holds the session's row commits within a few milliseconds. */
const heldMs = 20;

export type HeartbeatListener = {
  /** Called at every beat that finds the session ended, so a failure to act on it is made up for. */
  lost(): void;
  /** Called when a beat was written and the session is no longer overdue, except for the thread's own beats. */
  caughtUp?(): void;
};

export function startHeartbeat(store: Store, session: string, listener: HeartbeatListener): Heartbeat {
  const { clock } = store;
  const beats = new SharedArrayBuffer(16);
  const signals = new SharedArrayBuffer(8);
  const beat = new Float64Array(beats);
  beat[0] = clock.monotonic();

  // Every committed group stamps the beat when it is older than a second, so a busy writer needs no help. A stamp counts as a
  // beat only once the answer is there: until then, another session may have ended this one.
  let askedMs = clock.monotonic();
  store.beforeCommit({
    due: () => clock.monotonic() - Math.max(askedMs, beat[0] ?? 0) >= limits.beatMs,
    async run(tx) {
      const askedBefore = askedMs;
      const atMs = (askedMs = clock.monotonic());
      // The unit holds locks, and a transaction that holds the session's row may be waiting for one of them. Then the thread beats.
      const free = await tx.get(sql`select seq from daybook_session where id = ${session} ${skipLocked}`);
      if (free === undefined) {
        // Without a thread, the next unit tries again.
        if (clock !== systemClock) askedMs = askedBefore;
        return;
      }
      if ((await tx.run(beatStatement(session, tx.now))) === 0) return lose();
      const wasOverdue = isOverdue();
      beat[0] = Math.max(atMs, beat[0] ?? 0);
      if (wasOverdue) listener.caughtUp?.();
    },
  });
  const helper = clock === systemClock ? beatByThread() : beatByTimer();

  function isOverdue(): boolean {
    return beat[1] === 1 || clock.monotonic() - (beat[0] ?? 0) > limits.sessionTtlMs / 2;
  }

  function lose(): void {
    beat[1] = 1;
    listener.lost();
  }

  function beatByThread(): Pick<Heartbeat, "fail" | "stop"> {
    const target = { dialect: store.dialect, location: store.threadLocation, schema: store.schema };
    const data: HeartbeatData = { target, session, beats, signals };
    const thread = startThread("./heartbeat-thread", import.meta.url, data);
    const ended = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
    thread.on("message", lose); // the one thing the thread has to say
    thread.unref(); // again: listening to a thread keeps the program alive
    thread.on("error", () => undefined); // it shows as a late beat, never as a crash of the user's program
    const tell = (message: HeartbeatMessage): void => thread.postMessage(message);
    return {
      fail(error) {
        tell({ kind: "fail", error });
        Atomics.wait(new Int32Array(signals), 0, 0, failMsMax);
      },
      async stop() {
        // A short program ends before its thread is needed, or even loaded. That thread has nothing to close.
        if (Atomics.compareExchange(new Int32Array(signals), 1, 0, 2) === 0) return void (await thread.terminate());
        tell({ kind: "stop" });
        thread.ref();
        await ended;
      },
    };
  }

  function beatByTimer(): Pick<Heartbeat, "fail" | "stop"> {
    let stopped = false;
    let again: Timer | undefined;
    const look = (): void => {
      if (stopped) return;
      clock.after(limits.beatMs, look);
      void beatOnce();
    };
    const isLate = (): boolean => !stopped && clock.monotonic() - (beat[0] ?? 0) >= limits.beatMs;
    // An empty unit is enough: its group stamps the beat, unless another transaction holds the session's row. That one is waited
    // for in real time.
    const beatOnce = async (): Promise<void> => {
      if (!isLate()) return;
      await store.write(() => undefined).catch(() => undefined);
      again?.cancel();
      if (isLate() && beat[1] !== 1) again = store.waitClock.after(heldMs, () => void beatOnce());
    };
    clock.after(limits.beatMs, look);
    return {
      fail: () => undefined,
      async stop() {
        stopped = true;
        again?.cancel();
      },
    };
  }

  return {
    ...helper,
    get overdue() {
      return isOverdue();
    },
  };
}
