// doctor: asks every room's invariants, one after the other, off the event loop; and mend, which puts right what doctor finds and a
// rule can mend. That is, so far, times which no rule explains: they were written, or acted upon, while the clock was wrong.
import { appChecks } from "../apps/checks.ts";
import { storageChecks, type Check } from "../storage/checks.ts";
import type { Reader, Store } from "../storage/store.ts";
import { eventChecks } from "../events/checks.ts";
import { countFromRight, jobChecks, newestOf, type Counted, type Newest } from "../jobs/checks.ts";
import { callChecks } from "../calls/checks.ts";
import { recordChecks } from "../records/checks.ts";
import { scheduleChecks } from "../schedules/checks.ts";
import { telemetryChecks } from "../telemetry/checks.ts";
import type { Behind } from "../core/clock.ts";
import { conflict } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknownOfAll } from "../core/suggest.ts";
import { countOnceFromRight, stepBackAll } from "../schedules/step-back.ts";

export type Finding = {
  readonly promise: string;
  readonly name: string;
  /** The first offenders, at most ten. */
  readonly found: readonly string[];
  readonly count: number;
  readonly advice: string;
};

const sourceChecks = [...scheduleChecks, ...eventChecks, ...callChecks, ...appChecks];
export const checks = [...storageChecks, ...telemetryChecks, ...recordChecks, ...jobChecks, ...sourceChecks];

const shownMax = 10;

export function examine(store: Store): Promise<Finding[]> {
  return store.readsLong((reader) => examineBy(store, reader));
}

async function examineBy(store: Store, reader: Reader): Promise<Finding[]> {
  const now = store.clock.now();
  const findings: Finding[] = [];
  for (const { promise, name, find, ask, advice } of checks) {
    const rows = await reader.all<{ finding: unknown }>(find(reader.dialect, now));
    const all = [...(ask?.(store) ?? []), ...rows.map((row) => String(row.finding))];
    if (all.length > 0) findings.push({ promise, name, found: all.slice(0, shownMax), count: all.length, advice });
  }
  return findings;
}

export type Mended = {
  /** True: this is what would be mended, and nothing was. */
  readonly dryRun: boolean;
  /** What did not hold, and how many of it. */
  readonly mended: readonly { readonly name: string; readonly count: number }[];
};

const sliceMax = 500;

export async function mend(store: Store, options: { readonly dryRun?: boolean } = {}): Promise<Mended> {
  refuseUnknownOfAll(options, { fields: [], flags: ["dryRun"] }, "mend");
  const { dryRun = false } = options;
  if (!dryRun && store.time.settled(limits.clockAheadMs) === null) {
    throw conflict("the wall clock was set a moment ago: mend when it has kept its time for a minute", {});
  }
  const mended: { name: string; count: number }[] = [];
  await store.readsLong(async (reader) => {
    for (const check of checks) {
      if (check.mend === undefined) continue;
      const found = await reader.all<{ seq: number }>(check.find(reader.dialect, store.clock.now()));
      const seqs = found.map(({ seq }) => seq);
      const count = dryRun ? seqs.length : await mendFound(store, check.mend, seqs);
      if (count > 0) mended.push({ name: check.name, count });
    }
  });
  return { dryRun, mended };
}

// In slices, each a transaction of its own, so that other writers have their turn.
async function mendFound(store: Store, put: NonNullable<Check["mend"]>, seqs: readonly number[]): Promise<number> {
  let count = 0;
  for (let from = 0; from < seqs.length; from += sliceMax) {
    count += await store.write((tx) => put(tx, seqs.slice(from, from + sliceMax)));
  }
  return count;
}

type CountedAll = { readonly jobs: Counted; readonly once: number[] };

/** Puts right by itself what this process, and others of its machine, counted from a clock that was behind, once it has the time back
 *  that it had before. No other process can: what was written is what a clock that is right would have written then. */
function mendAfterBehind(store: Store, session: () => { readonly seq: number }): () => void {
  let made: Promise<Newest | undefined> | undefined;
  // While a clock that was set back is not yet believed, what comes later is told from what was there before. A book that cannot
  // be read just then is no reason to end the program.
  const stopHearing = store.time.onSet((byMs) => {
    if (byMs < 0) made = newestOf(store, session().seq).catch(() => undefined);
  });
  const stopMending = store.time.onBehind(async (was) => {
    // The time goes on as it was until the first look has settled. That this is told a moment late does not matter: a clock that was
    // behind was so by more than is smoothed.
    const toldAtMs = store.clock.monotonic() - limits.clockSmoothMs / 2;
    const saidBy = (): Behind => ({ ...was, toMs: was.toMs + Math.ceil(store.clock.monotonic() - toldAtMs) });
    const before = await made;
    if (before === undefined) return;
    const putRight = (said: () => Behind, counted?: CountedAll): Promise<CountedAll> =>
      store.write(
        async (tx) => ({
          jobs: await countFromRight(tx, said(), before, counted?.jobs),
          once: await countOnceFromRight(tx, said(), counted?.once),
        }),
        { putsRight: true },
      );
    const counted = await putRight(saidBy);
    const said = saidBy();
    // On PostgreSQL others may have begun by the old time just then. Their calls are brought in step as well. They may take so long
    // that the right time was what the wrong clock would say by then, so the second look ends where the first did.
    void store
      .begunEnded()
      .then(() => putRight(() => said, counted))
      .then(() => mend(store))
      .catch(() => undefined);
  });
  return () => {
    stopHearing();
    stopMending();
  };
}

// A transaction that fires a schedule just now holds it for some milliseconds.
const heldMs = 100;

/** Mends by itself once a clock that had run ahead is right again: at once when it has the time back that it had before, else when
 *  it has kept its new time for as long as the old one. Schedules do not wait so long: what is due is missed meanwhile, and what a
 *  clock that is wrong now steps back is decided again when it is right. */
function mendAfterSetBack(store: Store): () => void {
  let timer = { cancel: (): void => undefined };
  let steppedBack = false;
  const look = (): void => {
    timer.cancel();
    const now = store.time.settled(limits.clockAheadMs);
    const isBelieved = store.time.believed() !== null;
    if (!isBelieved) timer = store.clock.after(limits.clockAheadMs, look);
    // What fails here is still found by doctor, and mended by hand.
    if (now !== null) void putRight(isBelieved).catch(() => undefined);
  };
  const putRight = async (isBelieved: boolean): Promise<void> => {
    // This process saw it, so what is ahead by less than clocks may differ is known to be wrong as well.
    steppedBack ||= await stepBackAll(store, { aheadMs: 0 });
    if (!steppedBack) {
      timer.cancel();
      timer = store.waitClock.after(heldMs, look);
    } else if (isBelieved) await mend(store);
  };
  const stopHearing = store.time.onSet((byMs) => {
    if (byMs >= 0) return;
    steppedBack = false;
    look();
  });
  return () => {
    stopHearing();
    timer.cancel();
  };
}

export function mendBySelf(store: Store, session: () => { readonly seq: number }): () => void {
  const stops = [mendAfterSetBack(store), mendAfterBehind(store, session)];
  return () => stops.forEach((stop) => stop());
}
