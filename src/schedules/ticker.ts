// One timer to the earliest due slot. It is set anew at least every minute, so a machine that slept or whose clock was set
// is noticed, and whenever a schedule is made or changed. Every process that works may have one: a slot is decided once.
import type { Timer } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Engine } from "../jobs/engine.ts";
import type { Ports } from "../jobs/kind.ts";
import { fireDue } from "./fire.ts";
import { schedulesChannel } from "./schedule.ts";
import { stepBackAll } from "./step-back.ts";

export type Ticker = {
  /** Fires what is due now; resolves when nothing is left that is. */
  tick(): Promise<void>;
  stop(): Promise<void>;
};

const lookEveryMs = 60_000;
const retryMs = 1000;
// Another process holds what is due, and is about to decide it or to let it go.
const heldMs = 100;

/** `beforeLook` is called at most once a minute, before what is due is fired. */
export function startTicker(
  engine: Pick<Engine, "store" | keyof Ports>,
  beforeLook: () => Promise<void> = async () => undefined,
): Ticker {
  const { store } = engine;
  let timer: Timer | undefined;
  let ticking: Promise<void> | undefined;
  let again = false;
  let stopped = false;
  let armedFor = Number.POSITIVE_INFINITY;
  let preparedAt = Number.NEGATIVE_INFINITY;

  // The time to the next slot was computed by the clock as it was before.
  const stopHearing = store.time.onSet(() => void tick());
  const stopListening = store.onWake((channel) => {
    if (channel === schedulesChannel) void tick();
    // On SQLite another process has written something; only an earlier slot than the one we wait for is news.
    else if (channel === null) void noticeEarlier();
  });

  async function noticeEarlier(): Promise<void> {
    // A look that is under way may have read the times before this, and only then says what we wait for.
    await ticking;
    const at = await earliest().catch(() => null);
    if (at !== null && at < armedFor) void tick();
  }

  async function earliest(): Promise<number | null> {
    const [row] = await store.read<{ at: number | null }>(
      sql`select min(next_at) as at from daybook_schedule where next_at is not null`,
    );
    return row?.at ?? null;
  }

  function tick(): Promise<void> {
    // A look that is under way may have begun before the change that this call is about: the caller waits for another look.
    again = true;
    ticking ??= lookWhileAsked().finally(() => (ticking = undefined));
    return ticking;
  }

  async function lookWhileAsked(): Promise<void> {
    while (again && !stopped) {
      again = false;
      timer?.cancel();
      await look();
    }
  }

  async function look(): Promise<void> {
    let waitMs = lookEveryMs;
    // The next slot is waited for by the book's clock; another process, or a book that cannot be written, in real time.
    let { clock } = store;
    try {
      await prepare();
      const firedUntil = store.clock.now();
      await fireAll();
      const at = await earliest();
      armedFor = at ?? Number.POSITIVE_INFINITY;
      const inMs = at === null ? lookEveryMs : at - store.clock.now();
      // It has come due since: no other process holds it.
      if (at !== null && inMs <= 0 && at > firedUntil) again = true;
      waitMs = Math.min(lookEveryMs, inMs > 0 ? inMs : heldMs);
      if (inMs <= 0) clock = store.waitClock;
    } catch {
      waitMs = retryMs; // what could not be decided is still due
      clock = store.waitClock;
    }
    if (!stopped) timer = clock.after(waitMs, () => void tick());
  }

  async function prepare(): Promise<void> {
    if (store.clock.monotonic() - preparedAt < lookEveryMs) return;
    await stepBackAll(store);
    preparedAt = store.clock.monotonic();
    // What it could not do waits for the next minute; what is due must not wait for it.
    await beforeLook().catch(() => undefined);
  }

  async function fireAll(): Promise<void> {
    try {
      while (!stopped && (await store.write((tx) => fireDue(tx, engine)))) continue;
    } catch (error) {
      // One that cannot be decided must not keep the others from it: each by itself, and then the failure.
      const due = await store.read<{ seq: number }>(
        sql`select seq from daybook_schedule where next_at <= ${store.clock.now()} order by next_at limit ${limits.schedulesPerTickMax}`,
      );
      for (const { seq } of due) await store.write((tx) => fireDue(tx, engine, { only: seq })).catch(() => undefined);
      throw error;
    }
  }

  void tick();
  return {
    tick,
    async stop() {
      stopped = true;
      timer?.cancel();
      stopHearing();
      stopListening();
      await ticking;
    },
  };
}
