// A copy of a book: what `backup` writes, and what a file that was copied by other means is marked as. The original may do, or have
// done, whatever was open when the copy was made, so the copy holds all of that until somebody releases or drops it.
import { holdCalls } from "./calls/attempt/settled.ts";
import { invalid } from "./core/error.ts";
import { refuseUnknown } from "./core/suggest.ts";
import { countHeld, dropHeld, holdJobs, releaseHeld, toHeldRule } from "./jobs/hold.ts";
import type { HeldFilter, HeldJobs, HeldRule } from "./jobs/hold.ts";
import type { Rooms } from "./rooms.ts";
import { countHeldSchedules, holdSchedules, releaseSchedules, type HeldSchedules } from "./schedules/held.ts";
import { sql, type Sql } from "./storage/sql.ts";
import { endCopiedSessions } from "./telemetry/session.ts";

/** What tells a copy that it is one, as statements to be run on it. */
export function copyMarks(now: number): readonly Sql[] {
  return [...holdJobs(now), ...holdCalls(now), ...holdSchedules, ...endCopiedSessions];
}

/** What a copy holds. */
export type Held = { readonly jobs: readonly HeldJobs[]; readonly schedules: readonly HeldSchedules[] };

export type ReleaseOptions = HeldFilter & {
  /** True: the jobs are cancelled instead. Schedules are not touched by it. */
  readonly drop?: boolean;
  /** Reads only, and says what would be released or dropped. */
  readonly dryRun?: boolean;
};

export type Released = {
  readonly dryRun: boolean;
  readonly dropped: boolean;
  readonly jobs: number;
  readonly schedules: number;
};

const filters = ["kind", "tenant", "olderThan", "newerThan"] as const;

export async function held({ store }: Pick<Rooms, "store">, filter: HeldFilter = {}): Promise<Held> {
  refuseUnknown(filter, filters, "held");
  const rule = toHeldRule(store.clock.now(), filter);
  const schedules = namesSchedules(filter) ? await countHeldSchedules(store, filter.tenant) : [];
  return { jobs: await countHeld(store, rule), schedules };
}

// A schedule has no age that would say whether the original has done its work.
function namesSchedules({ kind, olderThan, newerThan }: HeldFilter): boolean {
  return (kind === undefined || kind === "schedule") && olderThan === undefined && newerThan === undefined;
}

export async function release(
  rooms: Pick<Rooms, "store" | "jobs">,
  { drop = false, dryRun = false, ...filter }: ReleaseOptions = {},
): Promise<Released> {
  refuseUnknown(filter, filters, "release");
  const { store, jobs: engine } = rooms;
  const rule = toHeldRule(store.clock.now(), filter);
  const found = dryRun ? await held(rooms, filter) : undefined;
  const schedules =
    drop || !namesSchedules(filter) ? 0 : (sum(found?.schedules) ?? (await releaseSchedules(store, filter.tenant)));
  const jobs = sum(found?.jobs) ?? (await letGo(rule));
  return { dryRun, dropped: drop, jobs, schedules };

  async function letGo(which: HeldRule): Promise<number> {
    if (drop) return dropHeld(store, engine, which);
    // Somebody had asked to cancel these: they must not run again here.
    const cancelled = await dropHeld(store, engine, {
      ...which,
      fits: sql`${which.fits} and line.cancel_requested_at is not null`,
    });
    return cancelled + (await releaseHeld(store, which));
  }
}

function sum(counts: readonly { readonly count: number }[] | undefined): number | undefined {
  return counts?.reduce((all, { count }) => all + count, 0);
}

/** Marks this book as a copy, as `backup` does with what it writes: for a file, or a database, that was copied by other means. */
export async function markAsCopy(rooms: Pick<Rooms, "store" | "attachment">): Promise<Held> {
  if (rooms.attachment !== undefined) {
    throw invalid("a book is marked as a copy before anybody works on it: open it with attach: false");
  }
  await rooms.store.write(async (tx) => {
    for (const mark of copyMarks(tx.now)) await tx.run(mark);
  });
  return held(rooms);
}
