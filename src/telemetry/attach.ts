// Attaches this process to the book: its session, the heart that keeps it alive, the watch over the others, and the
// last words when an exception that nobody caught ends the process.
import { describeError } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import { limits } from "../core/limits.ts";
import type { Store } from "../storage/store.ts";
import { startHeart, type Heart } from "./heart.ts";
import { thisProcess } from "./process-identity.ts";
import { startSession, stopSession, type OnSilent } from "./session.ts";
import { watchSessions, type Watch } from "./watch.ts";

export type Attachment = {
  /** The id of the session. A session that was declared silent while it lived is replaced by a new one. */
  readonly id: string;
  /** True while the last written beat is so old that others may soon take this session for dead. */
  readonly overdue: boolean;
  readonly watch: Watch;
  detach(): Promise<void>;
};

export type AttachOptions = {
  readonly metadata: string;
  readonly onSilent?: OnSilent | undefined;
  /** Told the new id after the old session was found ended by others. */
  readonly onLost?: ((lost: string, replacement: string) => void) | undefined;
};

export const sessionLost = defineFact<{ id: string; replacement: string }>("session.lost");

export async function attach(store: Store, options: AttachOptions): Promise<Attachment> {
  const identity = thisProcess();
  const begin = (): Promise<string> => store.write((tx) => startSession(tx, identity, options.metadata));
  let id = await begin();
  let heart: Heart = startHeart(store, id);
  let replacing = false;
  let detached = false;

  const watch = watchSessions({ store, identity, self: () => id, onSilent: options.onSilent });
  const stopListening = store.onWake(() => void replaceIfLost());

  // Others ended this session although it lives: it was stopped for longer than its time to live. What it owned is no
  // longer its own, so it goes on under a new id.
  async function replaceIfLost(): Promise<void> {
    if (!heart.lost || replacing || detached) return;
    replacing = true;
    try {
      const lost = id;
      await heart.stop();
      id = await begin();
      heart = startHeart(store, id);
      sessionLost.state({ id: lost, replacement: id });
      options.onLost?.(lost, id);
    } finally {
      replacing = false;
    }
  }

  // The monitor hears the error before the process ends. A program with a handler of its own decides for itself.
  function lastWords(error: unknown): void {
    if (process.listenerCount("uncaughtException") > 0) return;
    store.abandon();
    heart.fail(describeError(error));
  }
  process.on("uncaughtExceptionMonitor", lastWords);

  return {
    get id() {
      return id;
    },
    get overdue() {
      return heart.lost || heart.sinceBeatMs() > limits.sessionTtlMs / 2;
    },
    watch,
    async detach() {
      if (detached) return;
      detached = true;
      process.off("uncaughtExceptionMonitor", lastWords);
      stopListening();
      watch.stop();
      await heart.stop();
      await store.write((tx) => stopSession(tx, id));
    },
  };
}
