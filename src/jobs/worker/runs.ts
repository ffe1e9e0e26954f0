// The runs of one worker, from the claim that started them to the ending that a turn will write. A claim takes no more jobs
// than there are free places, and each handler starts as soon as its claim is on disk: nothing here waits to begin.
import { afterEither } from "../../core/clock.ts";
import type { DaybookError } from "../../core/error.ts";
import type { ClaimedJob } from "../claim/claim.ts";
import { abortRun, type RunState } from "../run/context.ts";
import type { Engine } from "../engine.ts";
import { finishRun, cancelled, interrupted, run, shuttingDown } from "../run/run.ts";
import { runsAlone } from "../settle/outcome.ts";
import { createStep } from "../run/step.ts";
import { createPendingWrites, type PendingWrites } from "./pending.ts";
import { quarantineOf, type Member, type Quarantine } from "./quarantine.ts";

export type Runs = {
  /** Places that are taken: by what runs, or by a claim under way. */
  readonly inHand: number;
  readonly pending: PendingWrites;
  readonly quarantine: Quarantine;
  /** Keeps places for what is being claimed, until the function that it returns is called. */
  reserve(places: number): () => void;
  /** Lets the next claim take a job that must run alone; false while this process runs anything. */
  enterAlone(): boolean;
  leaveAlone(): void;
  start(jobs: readonly ClaimedJob[]): void;
  /** Somebody asked to cancel a run, which need not be one of ours. */
  cancel(runId: string): void;
  abortAll(reason: DaybookError): void;
  drained(withinMs: number): Promise<void>;
  /** The worker has stopped. */
  leave(): void;
};

/** `changed` is told that there is something to write, or a place free. */
export function createRuns(engine: Engine, changed: () => void): Runs {
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
    const state: RunState = {
      job,
      startedMs: clock.monotonic(),
      controller: undefined,
      abortReason: undefined,
      onAbort: undefined,
      progress: undefined,
      logs: [],
      logged: 0,
      settled: false,
      step: undefined,
    };
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
    leave,
    get inHand() {
      return self.inHand;
    },
    reserve(places) {
      reserved += places;
      return () => {
        reserved -= places;
        if (places > 0 && self.inHand === 0) quarantine.wakeOthers(self);
      };
    },
    enterAlone: () => quarantine.enter(self),
    leaveAlone() {
      quarantine.leave(self);
      quarantine.wakeOthers(self);
    },
    start(jobs) {
      for (const job of jobs) start(job);
    },
    cancel(runId) {
      const state = running.get(runId);
      if (state !== undefined) abortRun(state, cancelled());
    },
    abortAll(reason) {
      for (const state of running.values()) abortRun(state, reason);
    },
    drained(withinMs) {
      if (running.size === 0) return Promise.resolve();
      return new Promise((resolve) => {
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
