// Attaches this process to the book: its session, the heartbeat that keeps it alive, the watch over other sessions, and the
// error that is recorded when an uncaught exception ends the process.
import { describeError } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import type { Store, Tx } from "../storage/store.ts";
import { startHeartbeat, type Heartbeat } from "./heartbeat.ts";
import { thisProcess } from "./process-identity.ts";
import { startSession, stopSession, type OnSilent, type SessionKey } from "./session.ts";
import { watchSessions, type Watch } from "./watch.ts";

export type Attachment = {
  /** The id of the session. When other sessions end it while it lives, a new session replaces it. */
  readonly id: string;
  readonly key: SessionKey;
  /** True while the last written beat is so old that other sessions may soon end this one. */
  readonly overdue: boolean;
  /** Calls back when the session is no longer overdue, until the returned function is called. */
  onTimely(hear: () => void): () => void;
  readonly watch: Watch;
  /** Ends the session. `letGo` releases what it holds in the same transaction. */
  detach(letGo?: (tx: Tx, key: SessionKey) => Promise<unknown>): Promise<void>;
};

/** How an engine asks for its session. One that is not attached has none, and claims nothing. */
export function sessionOf(attachment: Attachment | undefined) {
  return {
    session: (): SessionKey => attachment?.key ?? { id: "", seq: 0 },
    overdue: () => attachment?.overdue ?? true,
    onTimely: (hear: () => void) => attachment?.onTimely(hear) ?? (() => undefined),
  };
}

export type AttachOptions = {
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
    store.abandon();
    heartbeat.fail(describeError(error));
  });

  return {
    get id() {
      return key.id;
    },
    get key() {
      return key;
    },
    get overdue() {
      return heartbeat.overdue;
    },
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

/** The uncaught errors of this process: who records them, and the first one that the program handled itself. It belongs to the
 *  process, not to a store, because Node takes more than ten listeners for a leak and warns. */
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
