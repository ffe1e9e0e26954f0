// When a worker looks for work. Every wake is a hint: it makes the worker look at once, and one that is missed costs a moment
// only, because a look comes by itself. On SQLite the file's change counter tells of every commit of another process; on
// PostgreSQL a read looks every second. Due times and rates that open ring a timer.
import type { Clock, Timer } from "../../core/clock.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { indexedBy } from "../../storage/word.ts";
import type { Turn, TurnWork } from "./turn.ts";

export type Wake = ReturnType<typeof createWake>;

const lookEveryMs = 1000;
const retryMs = 200;
// The claimer that holds what we want commits within a few milliseconds.
const contendedMs = 5;

/** `changed` is told that there is reason for a turn. */
export function createWake(store: Pick<Store, "clock" | "waitClock" | "dialect" | "read">, changed: () => void) {
  const { clock, waitClock } = store;
  let stopped = false;
  const unlessStopped = (on: Clock): After => {
    return (ms, ring) => (stopped ? undefined : on.after(ms, ring));
  };
  const alarm = createTimer(unlessStopped(clock), look);
  const rest = createTimer(unlessStopped(waitClock), look);
  const routine = createTimer(unlessStopped(waitClock), lookRoutinely);
  let mayHaveWork = true;
  let woken = true; // since the turn under way began
  let dueAt: number | null | undefined; // undefined: not known
  let forgotten = false; // since the turn under way began
  let opensAt: number | null = null;
  let lookForHosted = true;
  let leftAlone = false;
  const closed = new Set<number>(); // lanes that were looked at in vain since the last wake
  if (store.dialect === "postgres") routine.set(lookEveryMs);

  /** Something was put in line. */
  function look(): void {
    rest.cancel();
    woken = true;
    closed.clear();
    mayHaveWork = true;
    changed();
  }

  /** The same, and due times may have changed. */
  function lookAnew(): void {
    dueAt = undefined;
    forgotten = true;
    look();
  }

  function lookRoutinely(): void {
    routine.set(lookEveryMs);
    if (!mayHaveWork) void lookIfAny();
  }

  /** The same, but only if a read finds something: a turn is a write, which would wake other processes in turn. */
  async function lookIfAny(): Promise<void> {
    const found = await peek(store).catch((): true => true);
    if (found === true || !knows(found)) lookAnew();
  }

  /** Whether the timer rings by then without being told. */
  function knows(at: number | null): boolean {
    return dueAt !== undefined && (at === null || (dueAt !== null && dueAt <= at));
  }

  function arm(): void {
    const now = clock.now();
    if (opensAt !== null && opensAt <= now) {
      opensAt = null;
      look();
    }
    const at = earlier(dueAt ?? null, opensAt);
    if (at !== null && at <= now) look();
    else if (at === null) alarm.cancel();
    else alarm.set(at - now);
  }

  /** Lanes that are all closed would be visited for ever, so a worker that has seen them all waits for a wake. */
  function goesOn({ want }: TurnWork, { claim, moreHosted }: Turn): boolean {
    const { jobs, parked, more, looked, contended } = claim;
    if (jobs.length + parked > 0) closed.clear();
    if (jobs.length >= want || moreHosted) return true;
    if (contended) rest.set(contendedMs);
    if (jobs.length + parked > 0) return more;
    if (!more || contended) return false;
    const news = looked.some((lane) => !closed.has(lane));
    for (const lane of looked) closed.add(lane);
    return news;
  }

  return {
    /** A look may find work. */
    get mayHaveWork() {
      return mayHaveWork;
    },
    /** The same, or it rests for a moment because another worker holds what it wants: it is not idle. */
    get expectsWork() {
      return mayHaveWork || rest.isSet;
    },
    /** A job that we could run waits until this process is empty. */
    get leftAlone() {
      return leftAlone;
    },
    look,
    lookAnew,
    lookIfAny,
    /** Jobs of our names may wait for a host. */
    hostsChanged: () => void (lookForHosted = true),
    /** Nothing runs here: what must run alone can be taken. */
    nothingRuns() {
      if (leftAlone) mayHaveWork = true;
    },
    /** What to look for in the turn that begins now. */
    ask(): Pick<TurnWork, "lookForDue" | "lookForHosted"> {
      woken = false;
      forgotten = false;
      return { lookForDue: dueAt === undefined || (dueAt !== null && dueAt <= clock.now()), lookForHosted };
    },
    learn(work: TurnWork, done: Turn) {
      const { claim } = done;
      // A wake that came meanwhile may be about a time that the turn did not see.
      if (done.dueAt !== undefined && !forgotten) dueAt = done.dueAt;
      leftAlone = claim.leftAlone || (done.waitsAlone ?? leftAlone);
      opensAt = earlier(opensAt, claim.opensAt);
      if (work.lookForHosted && work.want > 0 && !woken) lookForHosted = done.moreHosted;
      if (work.want > 0 && done.alive) mayHaveWork = goesOn(work, done) || woken;
      if (!done.alive) {
        // A new session is on its way; until then there is nothing to claim for.
        mayHaveWork = false;
        rest.set(retryMs);
      }
      arm();
    },
    /** The turn came to nothing. */
    failed({ lookForHosted: asked }: TurnWork) {
      if (asked) lookForHosted = true;
      lookAnew();
    },
    stop() {
      stopped = true;
      for (const timer of [alarm, rest, routine]) timer.cancel();
    },
  };
}

type After = (ms: number, ring: () => void) => Timer | undefined;

function createTimer(after: After, ring: () => void) {
  let timer: Timer | undefined;
  const cancel = (): void => {
    timer?.cancel();
    timer = undefined;
  };
  return {
    get isSet() {
      return timer !== undefined;
    },
    set(ms: number) {
      cancel();
      timer = after(ms, () => {
        timer = undefined;
        ring();
      });
    },
    cancel,
  };
}

type Found = { queued: number | null; hosted: number | null; due_at: number | null; opens_at: number | null };

/** True when a turn could claim or release something; else when the next is due, or null. */
async function peek(store: Pick<Store, "read">): Promise<true | number | null> {
  const [found] = await store.read<Found>(sql`select
    (select 1 from daybook_line ${indexedBy("jobs_to_claim")} where status = 'queued' limit 1) as queued,
    (select 1 from daybook_line ${indexedBy("jobs_waiting")}
      where status = 'waiting' and waits_key is not null and waits_for = 'host' limit 1) as hosted, ${nextTimes}`);
  if (found === undefined || found.queued !== null || found.hosted !== null) return true;
  return earlier(found.due_at, found.opens_at);
}

type Times = { readonly due_at: number | null; readonly opens_at: number | null };

export const nextTimes = sql`
  (select min(available_at) from daybook_line where status = 'waiting' and waits_for = 'time' and waits_key is null) as due_at,
  (select min(opens_at) from daybook_rate_window where opens_at is not null) as opens_at`;

/** When the next waiting job is due, or a rate that jobs wait for opens; null when neither is to come. */
export async function nextDueAt(tx: Tx): Promise<number | null> {
  const row = await tx.get<Times>(sql`select ${nextTimes}`);
  return earlier(row?.due_at ?? null, row?.opens_at ?? null);
}

export function earlier(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
