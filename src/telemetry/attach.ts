// Attaches this process to the book: its session, the heart that keeps it alive, the watch over the others, and the
// last words when an exception that nobody caught ends the process.
import { describeError } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import type { Store, Tx } from "../storage/store.ts";
import { type Heart, startHeart } from "./heartbeat.ts";
import { thisProcess } from "./process-identity.ts";
import { type OnSilent, type SessionKey, startSession, stopSession } from "./session.ts";
import { type Watch, watchSessions } from "./watch.ts";

export type Attachment = {
  /** The id of the session. A session that was declared silent while it lived is replaced by a new one. */
  readonly id: string;
  readonly key: SessionKey;
  /** True while the last written beat is so old that others may soon take this session for dead. */
  readonly overdue: boolean;
  /** Calls back when it is no longer overdue, until the function that it returns is called. */
  onTimely(hear: () => void): () => void;
  readonly watch: Watch;
  /** Ends the session, and in the same transaction lets go what it holds. */
  detach(letGo?: (tx: Tx, key: SessionKey) => Promise<unknown>): Promise<void>;
};

export type AttachOptions = {
  readonly metadata: string;
  readonly onSilent?: OnSilent | undefined;
  /** Told the new id after the old session was found ended by others. */
  readonly onLost?: ((lost: SessionKey, replacement: SessionKey) => void) | undefined;
};

export const sessionLost = defineFact<{ id: string; replacement: string }>("session.lost");

export async function attach(store: Store, options: AttachOptions): Promise<Attachment> {
  const identity = thisProcess();
  const begin = (): Promise<SessionKey> => store.write((tx) => startSession(tx, identity, options.metadata));
  const ears = new Set<() => void>();
  const tellTimely = (): void => ears.forEach((hear) => hear());
  let key = await begin();
  let heart = heartOf(key);
  let replacing: Promise<void> | undefined;
  let detached = false;
  let detaching: Promise<void> | undefined;

  const watch = watchSessions({ store, identity, self: () => key.id, onSilent: options.onSilent });

  function heartOf(session: SessionKey): Heart {
    return startHeart(store, session.id, {
      lost() {
        if (detached || session.id !== key.id) return;
        // A failure is made up for: every beat finds the session ended again, until there is a new one.
        replacing ??= replace()
          .catch(() => undefined)
          .finally(() => (replacing = undefined));
      },
      caughtUp: tellTimely,
    });
  }

  // Others ended this session although it lives: it was stopped for longer than its time to live. What it owned is no
  // longer its own, so it goes on under a new id.
  async function replace(): Promise<void> {
    const lost = key;
    const replacement = await begin();
    await heart.stop();
    key = replacement;
    heart = heartOf(key);
    sessionLost.state({ id: lost.id, replacement: key.id });
    options.onLost?.(lost, key);
    tellTimely();
  }

  const forgetLastWords = onLastWords((error) => {
    store.abandon();
    heart.fail(describeError(error));
  });

  return {
    get id() {
      return key.id;
    },
    get key() {
      return key;
    },
    get overdue() {
      return heart.overdue;
    },
    onTimely(hear) {
      ears.add(hear);
      return () => ears.delete(hear);
    },
    watch,
    detach: (letGo) => (detaching ??= detach(letGo)),
  };

  async function detach(letGo?: (tx: Tx, key: SessionKey) => Promise<unknown>): Promise<void> {
    detached = true;
    forgetLastWords();
    watch.stop();
    await replacing;
    await heart.stop();
    await store.write(async (tx) => {
      await stopSession(tx, key.id);
      await letGo?.(tx, key);
    });
  }
}

// What must still be said when an exception that nobody caught is about to end the process.

const speakers = new Set<(error: unknown) => void>();
let unspoken: { readonly error: unknown } | undefined;

/** Returns the function that takes `say` back. */
export function onLastWords(say: (error: unknown) => void): () => void {
  // One listener for all the books of a process: Node takes eleven for a leak and warns.
  if (speakers.size === 0) process.on("uncaughtExceptionMonitor", hear).on("exit", hearExit);
  speakers.add(say);
  return () => {
    speakers.delete(say);
    if (speakers.size === 0) process.off("uncaughtExceptionMonitor", hear).off("exit", hearExit);
  };
}

// The monitor hears the error before the process ends. A program that handles such errors itself, and may go on, is
// left alone.
function hear(error: unknown): void {
  if (process.listenerCount("uncaughtException") > 0 || process.hasUncaughtExceptionCaptureCallback()) {
    // Many such handlers log and then end the process: if it does end, with a failure, this was why.
    unspoken ??= { error };
    return;
  }
  speak(error);
}

function hearExit(code: number): void {
  if (code !== 0 && unspoken !== undefined) speak(unspoken.error);
}

function speak(error: unknown): void {
  for (const say of speakers) {
    try {
      say(error);
    } catch {
      // What ends the process is the error it had, not our failure to write it down.
    }
  }
}
