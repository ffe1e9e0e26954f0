// A copy of a book: what `backup` writes, and what a file that was copied by other means is marked as. The original may do, or have
// done, whatever was open when the copy was made, so the copy holds all of that until an operator releases or drops it.
import { endCopiedOperations } from "../access/operations.ts";
import { callJobs, holdCalls } from "../calls/attempt/settled.ts";
import { callKind } from "../calls/call.ts";
import { conflict, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknownOfAll } from "../core/suggest.ts";
import { countHeld, dropHeld, holdJobs, releaseHeld, toHeldRule } from "../jobs/wait/hold.ts";
import type { HeldFilter, HeldJobs, HeldRule } from "../jobs/wait/hold.ts";
import type { Ports } from "../jobs/kind.ts";
import type { Rooms } from "../open/rooms.ts";
import {
  countHeldSchedules,
  holdSchedules,
  releaseSchedules,
  type HeldSchedules,
} from "../schedules/write-schedule.ts";
import { sql, type Sql } from "../storage/sql.ts";
import { endCopiedSessions, goneSessions, runningSessions, type SessionRow } from "../telemetry/session.ts";

/** What tells a copy that it is one, as statements to be run on it. */
export function copyMarks(now: number): readonly Sql[] {
  return [...holdJobs(now), ...holdCalls(now), ...holdSchedules, ...endCopiedSessions, ...endCopiedOperations(now)];
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
  /** How many of these stood behind another one, and follow it. */
  readonly behind: number;
  readonly schedules: number;
};

const fields = ["kind", "tenant", "olderThan", "newerThan"] as const;
const flags = ["drop", "dryRun"] as const;

export async function held({ store }: Pick<Rooms, "store">, filter: HeldFilter = {}): Promise<Held> {
  refuseUnknownOfAll(filter, { fields, flags: [] }, "held");
  return look(store, filter, { drop: false });
}

async function look(store: Rooms["store"], filter: HeldFilter, how: { readonly drop: boolean }): Promise<Held> {
  const rule = toHeldRule(store.clock.now(), filter);
  const schedules = !how.drop && namesSchedules(filter) ? await countHeldSchedules(store, filter.tenant) : [];
  return { jobs: await countHeld(store, rule, how), schedules };
}

// A schedule has no age that would say whether the original has done its work.
function namesSchedules({ kind, olderThan, newerThan }: HeldFilter): boolean {
  return (kind === undefined || kind === "schedule") && olderThan === undefined && newerThan === undefined;
}

export async function release(
  rooms: Pick<Rooms, "store" | "jobs" | "calls">,
  options: ReleaseOptions = {},
): Promise<Released> {
  refuseUnknownOfAll(options, { fields, flags }, "release");
  const { drop = false, dryRun = false, ...filter } = options;
  const { store } = rooms;
  const ports = silentPorts(rooms);
  const rule = toHeldRule(store.clock.now(), filter);
  const found = await look(store, filter, { drop });
  const behind = found.jobs.reduce((all, each) => all + each.behind, 0);
  if (dryRun) return { dryRun, dropped: drop, jobs: sum(found.jobs), behind, schedules: sum(found.schedules) };
  const schedules = drop || !namesSchedules(filter) ? 0 : await releaseSchedules(store, filter.tenant);
  return { dryRun, dropped: drop, jobs: await letGo(rule), behind, schedules };

  async function letGo(which: HeldRule): Promise<number> {
    if (drop) return dropHeld(store, ports, which);
    // A caller had asked to cancel these: they must not run again here.
    const cancelled = await dropHeld(store, ports, {
      ...which,
      fits: sql`${which.fits} and line.cancel_requested_at is not null`,
    });
    return cancelled + (await releaseHeld(store, which));
  }
}

/** What is dropped is the original's, which tells of its end, or has. Here no webhook, sink or listener hears of it. */
function silentPorts({ jobs: { kinds }, calls }: Pick<Rooms, "jobs" | "calls">): Ports {
  return { kinds: { ...kinds, [callKind]: callJobs({ ...calls, announce: undefined }) } };
}

function sum(counts: readonly { readonly count: number }[]): number {
  return counts.reduce((all, { count }) => all + count, 0);
}

/** Marks this book as a copy, as `backup` does with what it writes: for a file, or a database, that was copied by other means. */
export async function markAsCopy(rooms: Pick<Rooms, "store" | "attachment">): Promise<Held> {
  if (rooms.attachment !== undefined) {
    throw invalid("a book is marked as a copy before any process works on it: open it with attach: false");
  }
  const { store } = rooms;
  const silent = await refuseAtWork(store);
  await store.write(async (tx) => {
    refuseBeats(await tx.all<SessionRow>(runningSessions()), silent);
    for (const mark of copyMarks(tx.now)) await tx.run(mark);
  });
  return held(rooms);
}

/** The beats of the sessions that are called running, once they have been silent for five. A copy has the sessions of the
 *  original in it, and none of them beats there. One that beats has this very book open. */
async function refuseAtWork(store: Rooms["store"]): Promise<Beats> {
  const read = (): Promise<SessionRow[]> => store.read<SessionRow>(runningSessions());
  const beats: Beats = new Map((await read()).map(({ id, beat }) => [id, beat]));
  const gone = (await goneSessions(store)).length;
  if (gone === beats.size) return beats;
  for (let heard = 0; heard < 5; heard += 1 / 4) {
    await store.waitClock.sleep(limits.beatMs / 4);
    refuseBeats(await read(), beats);
  }
  return beats;
}

type Beats = ReadonlyMap<string, number>;

function refuseBeats(sessions: readonly SessionRow[], before: Beats): void {
  const living = sessions.find(({ id, beat }) => before.get(id) !== beat);
  if (living === undefined) return;
  const { id, pid, host } = living;
  throw conflict(
    `session ${id} (process ${pid} on ${host}) has this book open, and marked as a copy it would lose its jobs: ` +
      "stop it first, or, if this is the original, mark the copy instead",
    { sessionId: id, pid, host },
  );
}
