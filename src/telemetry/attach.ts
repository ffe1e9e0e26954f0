// Attaches this process to the book: its session, the heartbeat that keeps it alive, the watch over other sessions, and the
// error that is recorded when an uncaught exception ends the process. On the system clock a thread beats when the event loop does
// not; on any other clock (tests, the simulation) a timer of that clock does, because a thread does not share their time.
import { systemClock, type Timer } from "../core/clock.ts";
import { currentCause } from "../core/cause.ts";
import { describeError, type ErrorDescription } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { startThread } from "../storage/thread.ts";
import { forShare, skipLocked } from "../storage/word.ts";
import type { HeartbeatData, HeartbeatMessage } from "./heartbeat-thread.ts";
import { thisProcess } from "./process-identity.ts";
import { unwritten, type RunBatch } from "./run-batch.ts";
import { beatStatement, startSession, stopSession } from "./session.ts";
import type { OnSilent, SessionKey } from "./session.ts";
import { watchSessions, type Watch } from "./watch.ts";

export type Attachment = {
  /** The session. When other sessions end it while it lives, a new session replaces it. */
  session(): SessionKey;
  /** True while the last written beat is so old that other sessions may soon end this one. */
  overdue(): boolean;
  /** Calls back when the session is no longer overdue, until the returned function is called. */
  onTimely(hear: () => void): () => void;
  readonly watch: Watch;
  /** Ends the session. `letGo` releases what it holds in the same transaction. */
  detach(letGo?: (tx: Tx, key: SessionKey) => Promise<unknown>): Promise<void>;
};

/** Of a process that only looks at the book, and so claims nothing. */
export const unattached: Pick<Attachment, "session" | "overdue" | "onTimely"> = {
  session: () => ({ id: "", seq: 0 }),
  overdue: () => true,
  onTimely: () => () => undefined,
};

type AttachOptions = {
  readonly metadata: string;
  readonly onSilent?: OnSilent | undefined;
  /** Called with the new session after other sessions ended the old one. */
  readonly onLost?: ((lost: SessionKey, replacement: SessionKey) => void) | undefined;
};

export const sessionLost = defineFact<{ id: string; replacement: string }>("session.lost");

export async function attach(store: Store, options: AttachOptions): Promise<Attachment> {
  const identity = thisProcess();
  const begin = (): Promise<SessionKey> => store.write((tx) => startSession(tx, identity, options.metadata));
  const timely = new Set<() => void>();
  const tellTimely = (): void => timely.forEach((hear) => hear());
  let key = await begin();
  let heartbeat = heartbeatOf(key);
  let replacing: Promise<void> | undefined;
  let detached = false;
  let detaching: Promise<void> | undefined;

  const watch = watchSessions({ store, identity, self: () => key.id, onSilent: options.onSilent });

  function heartbeatOf(session: SessionKey): Heartbeat {
    return startHeartbeat(store, session.id, {
      lost() {
        if (detached || session.id !== key.id) return;
        // The next beat makes up for a failure: it finds the session ended again.
        replacing ??= replace()
          .catch(() => undefined)
          .finally(() => (replacing = undefined));
      },
      caughtUp: tellTimely,
    });
  }

  // Other sessions ended this one although it lives, because the process was stopped for longer than its time to live. It no
  // longer owns what it held, so it continues as a new session.
  async function replace(): Promise<void> {
    const lost = key;
    const replacement = await begin();
    await heartbeat.stop();
    key = replacement;
    heartbeat = heartbeatOf(key);
    sessionLost.state({ id: lost.id, replacement: key.id });
    options.onLost?.(lost, key);
    tellTimely();
  }

  const stopListening = onUncaughtError((error) => {
    const described = describeError(error);
    const left = [...unwritten(store)].flatMap((tell) => tell(described));
    store.abandon();
    heartbeat.fail(described, left);
  });

  return {
    session: () => key,
    overdue: () => heartbeat.overdue,
    onTimely(hear) {
      timely.add(hear);
      return () => timely.delete(hear);
    },
    watch,
    detach: (letGo) => (detaching ??= detach(letGo)),
  };

  async function detach(letGo?: (tx: Tx, key: SessionKey) => Promise<unknown>): Promise<void> {
    detached = true;
    stopListening();
    watch.stop();
    await replacing;
    await heartbeat.stop();
    await store.write(async (tx) => {
      await stopSession(tx, key.id);
      await letGo?.(tx, key);
    });
  }
}

/** An ended session must take nothing, because no other session would recover it. The lock makes a session that is ending this one
 *  wait for our commit and find what we took. */
export async function isAlive(tx: Tx, sessionSeq: number): Promise<boolean> {
  const row = await tx.get(
    sql`select seq from daybook_session where seq = ${sessionSeq} and status = 'running' ${forShare}`,
  );
  return row !== undefined;
}

/** The uncaught errors of this process: the recorders that hear of them, and the first one that the program handled itself. It belongs
 *  to the process, not to a store, because Node takes more than ten listeners for a leak and warns. */
const uncaught: { readonly recorders: Set<(error: unknown) => void>; handled?: { readonly error: unknown } } = {
  recorders: new Set(),
};

/** Calls `record` when an uncaught exception is about to end the process, until the returned function is called. */
function onUncaughtError(record: (error: unknown) => void): () => void {
  const { recorders } = uncaught;
  if (recorders.size === 0) process.on("uncaughtExceptionMonitor", onException).on("exit", onExit);
  recorders.add(record);
  return () => {
    recorders.delete(record);
    if (recorders.size === 0) process.off("uncaughtExceptionMonitor", onException).off("exit", onExit);
  };
}

// Node calls the monitor before the process ends. A program that handles such errors itself may go on, so nothing is recorded.
function onException(error: unknown): void {
  if (process.listenerCount("uncaughtException") > 0 || process.hasUncaughtExceptionCaptureCallback()) {
    // Many such handlers log and then end the process. If it ends with a failure, this error was the reason.
    uncaught.handled ??= { error };
    return;
  }
  // Code of a run that takes its own mistakes upon itself: without another listener Node would end the process.
  if (currentCause()?.stray?.(error) === true) return void process.once("uncaughtException", () => undefined);
  recordAll(error);
}

function onExit(code: number): void {
  if (code !== 0 && uncaught.handled !== undefined) recordAll(uncaught.handled.error);
}

function recordAll(error: unknown): void {
  for (const record of uncaught.recorders) {
    try {
      record(error);
    } catch {
      // The process must end with its own error, not with our failure to record it.
    }
  }
}

type Heartbeat = {
  /** True while the last written beat is so old that other sessions may soon end this one, or after a beat found that they did. */
  readonly overdue: boolean;
  /** Writes the error, and the runs that are not on disk yet, and blocks until they are, because the process is about to end. */
  fail(error: ErrorDescription, left: readonly RunBatch[]): void;
  stop(): Promise<void>;
};

const failMsMax = 5000;
/** A transaction that holds the session's row commits within a few milliseconds. */
const heldMs = 20;

type HeartbeatListener = {
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
      fail(error, left) {
        tell({ kind: "fail", error, left });
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
