// The runs of one worker, from the claim that started them to the ending that a turn will write. A claim takes no more jobs
// than there are free places, and each handler starts as soon as its claim is on disk: nothing here waits to begin.
import { afterEither, type Clock } from "../../core/clock.ts";
import type { DaybookError, ErrorCode } from "../../core/error.ts";
import { runsAlone, type ClaimedJob } from "../claim/claim.ts";
import { abortRun, cancelled, interrupted, newRun, run, shuttingDown, type RunState } from "../run/run.ts";
import type { Engine } from "../engine.ts";
import { finishRun, createStep } from "../run/step.ts";
import { settle, type Ending } from "../settle/settle.ts";
import type { RunLogRow } from "../../telemetry/log.ts";
import { runNotesDropped } from "../kind.ts";
import { rememberFor } from "../../core/remember.ts";

/** `changed` is told that there is something to write, or a place free. */
export function createRuns(engine: Engine, changed: () => void) {
  const { clock } = engine;
  const running = new Map<string, RunState>();
  const waiting: (() => void)[] = [];
  const pending = createPendingWrites();
  const quarantine = quarantineOf(engine);
  let reserved = 0;
  const self: Member = {
    get inHand() {
      return running.size + reserved;
    },
    wake: changed,
  };
  const leave = quarantine.join(self);

  const parts: Parameters<typeof run>[3] = {
    ended(state, ending) {
      if (ending !== undefined) pending.ended(ending);
      running.delete(state.job.run_id);
      if (runsAlone(state.job)) quarantine.aloneEnded();
      if (running.size === 0) for (const resolve of waiting.splice(0)) resolve();
      changed();
      if (self.inHand === 0) quarantine.wakeOthers(self);
    },
    now: () => clock.now(),
    changed(state) {
      pending.changed(state);
      changed();
    },
    finish: (state, work) => finishRun(engine, state, parts, work),
    step: (state) => createStep(engine, state),
  };

  function start(job: ClaimedJob): void {
    const definition = engine.definitions.get(job.name);
    const state = newRun(job, clock.monotonic());
    running.set(job.run_id, state);
    if (runsAlone(job)) quarantine.aloneStarted();
    if (definition !== undefined) return run(engine, definition, state, parts);
    // The app that ran it was stopped while it was being claimed. It goes back to its place for another process.
    abortRun(state, shuttingDown());
    parts.ended(state, interrupted(engine, state));
  }

  return {
    pending,
    quarantine,
    /** The worker has stopped. */
    leave,
    /** Places that are taken: by what runs, or by a claim under way. */
    get inHand() {
      return self.inHand;
    },
    /** Keeps places for what is being claimed, until the function that it returns is called. */
    reserve(places: number) {
      reserved += places;
      return () => {
        reserved -= places;
        if (places > 0 && self.inHand === 0) quarantine.wakeOthers(self);
      };
    },
    /** Lets the next claim take a job that must run alone; false while this process runs anything. */
    enterAlone: () => quarantine.enter(self),
    leaveAlone() {
      quarantine.leave(self);
      quarantine.wakeOthers(self);
    },
    start(jobs: readonly ClaimedJob[]) {
      for (const job of jobs) start(job);
    },
    /** The run need not be one of ours. */
    cancel(runId: string) {
      const state = running.get(runId);
      if (state !== undefined) abortRun(state, cancelled());
    },
    abortAll(reason: DaybookError, names?: ReadonlySet<string>) {
      for (const state of running.values()) if (names?.has(state.job.name) !== false) abortRun(state, reason);
    },
    drained(withinMs: number) {
      if (running.size === 0) return Promise.resolve();
      return new Promise<void>((resolve) => {
        const bound = Number.isFinite(withinMs);
        const timer = bound ? afterEither(clock, withinMs, resolve, { keepAlive: true }) : undefined;
        waiting.push(() => {
          timer?.cancel();
          resolve();
        });
      });
    },
  };
}

// What a worker has still to write: how its runs ended, and what they said about themselves. It stays here until a turn has
// written it.

export type Progress = {
  readonly seq: number;
  readonly run_id: string;
  readonly progress: number;
  readonly note: string | null;
};

export type Pending = {
  readonly endings: readonly Ending[];
  readonly logs: readonly RunLogRow[];
  readonly progress: readonly Progress[];
};

export function createPendingWrites() {
  const changed = new Set<RunState>();
  let endings: Ending[] = [];
  let logs: RunLogRow[] = [];
  let progress: Progress[] = [];

  function collect(): void {
    for (const state of changed) {
      const { seq, run_id, tenant_id } = state.job;
      for (const { level, message, fields, at } of state.logs.splice(0)) {
        logs.push({ tenant_id, run_id, logged_at: at, level, message, fields });
      }
      if (state.progress === undefined) continue;
      progress.push({ seq, run_id, progress: state.progress.done, note: state.progress.note });
      state.progress = undefined;
    }
    changed.clear();
  }

  return {
    get any() {
      return endings.length > 0 || changed.size > 0 || logs.length > 0 || progress.length > 0;
    },
    ended: (ending: Ending) => void endings.push(ending),
    /** The run has logged a line or made progress. */
    changed: (state: RunState) => void changed.add(state),
    take(): Pending {
      if (changed.size > 0) collect();
      // One statement updates a row once, so of several reports of one run the last one counts.
      const latest = new Map(progress.map((each) => [each.run_id, each]));
      const pending = { endings, logs, progress: [...latest.values()] };
      [endings, logs, progress] = [[], [], []];
      return pending;
    },
    /** Takes back what could not be written. */
    giveBack(pending: Pending) {
      endings = [...pending.endings, ...endings];
      logs = [...pending.logs, ...logs];
      progress = [...pending.progress, ...progress];
    },
  };
}

/** Failures that pass by themselves; nothing is given up for them. */
const passes: readonly ErrorCode[] = [
  "busy",
  "unavailable",
  "unknown_outcome",
  "full",
  "conflict",
  "timeout",
  "closed",
];
export const passing: ReadonlySet<ErrorCode> = new Set(passes);

const dropNotesAfter = 2;
const oneByOneAfter = 3;

/** What is left to write after the n-th failure in a row for a reason that does not pass. A turn writes many things at once,
 *  so one that cannot be written holds up the others: logs and progress are given up first, then every ending is written by
 *  itself. */
export async function writeApart(engine: Engine, pending: Pending, failures: number): Promise<Pending> {
  const { endings } = pending;
  if (failures < dropNotesAfter) return pending;
  const dropped = pending.logs.length + pending.progress.length;
  if (dropped > 0) runNotesDropped.state({ count: dropped });
  if (failures < oneByOneAfter || endings.length < 2) return { endings, logs: [], progress: [] };
  const left: Ending[] = [];
  for (const ending of endings) {
    try {
      await engine.store.write((tx) => settle(tx, engine, [ending]), { beat: false });
    } catch {
      left.push(ending);
    }
  }
  return { endings: left, logs: [], progress: [] };
}

// A job that was lost twice runs alone in its process: the workers of one book share a process, and so the fate of a job
// that ends it. While one of them claims or runs such a job, the others claim nothing.

export type Member = {
  /** Places that are taken: by what runs, or by a claim under way. */
  readonly inHand: number;
  /** The process may have become empty, or open again. */
  wake(): void;
};

// A drain gives up after this long, and the next one, for longer, comes much later: other jobs must not stand still for
// one that keeps killing its process.
const drainMs = 10_000;
const drainMsMax = 300_000;
const restFactor = 10;

export const quarantineOf = rememberFor((engine: Pick<Engine, "clock">) => createQuarantine(engine.clock));

function createQuarantine(clock: Clock) {
  const members = new Set<Member>();
  let claiming: Member | undefined;
  let aloneRunning = 0;
  let drainSince = Number.NEGATIVE_INFINITY;
  let drainingMs = drainMs;
  let emptied = true;
  const isIdle = (): boolean => ![...members].some((member) => member.inHand > 0);
  const isClosed = (): boolean => aloneRunning > 0 || claiming !== undefined;
  /** Enough time has passed since the last drain for another one. */
  const mayDrain = (): boolean => clock.monotonic() - drainSince >= restFactor * drainingMs;
  return {
    /** Returns the function that leaves. */
    join(member: Member) {
      members.add(member);
      return () => members.delete(member);
    },
    /** No worker of the process holds anything. */
    get idle() {
      return isIdle();
    },
    /** A job that must be alone runs, or is being claimed, so nothing else may be. */
    get closed() {
      return isClosed();
    },
    /** Lets `member` claim what must run alone; false while the process is not empty. */
    enter(member: Member) {
      if (isClosed() || !isIdle()) return false;
      claiming = member;
      return true;
    },
    leave(member: Member) {
      if (claiming === member) claiming = undefined;
    },
    aloneStarted: () => void aloneRunning++,
    aloneEnded: () => void aloneRunning--,
    wakeOthers(member: Member) {
      for (const other of members) if (other !== member) other.wake();
    },
    mayDrain,
    /** Asks all workers to claim nothing for a while, so that the process becomes empty. */
    drain() {
      if (!mayDrain()) return;
      // The last drain was too short for what ran here, so this one is longer.
      drainingMs = emptied ? drainMs : Math.min(drainMsMax, 2 * drainingMs);
      emptied = false;
      drainSince = clock.monotonic();
      clock.after(drainingMs, () => members.forEach((member) => member.wake()));
    },
    mustDrain() {
      if (clock.monotonic() - drainSince >= drainingMs) return false;
      if (!isIdle()) return true;
      emptied = true;
      return false;
    },
  };
}
