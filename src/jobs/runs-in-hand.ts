// The jobs a worker holds: claimed and not started, running, and ended but not yet settled. An ending stays here until
// it is on disk or the job is known to be somebody else's.
import type { DaybookError } from "../core/error.ts";
import { begin, startsOnDisk } from "./alone.ts";
import type { Claimed, ClaimedJob } from "./claim.ts";
import { abortRun, type RunState } from "./context.ts";
import { crewOf, type Crew, type Member } from "./crew.ts";
import type { Engine } from "./engine.ts";
import { finishRun } from "./finish.ts";
import { createNewsDesk, type News } from "./news.ts";
import { cancelled, interrupted, run } from "./run.ts";
import { createStep } from "./step.ts";

export type RunsInHand = {
  /** Claimed, being claimed, or running. */
  readonly inHand: number;
  readonly hasNews: boolean;
  /** All workers of this process, this one among them. */
  readonly crew: Crew;
  readonly holdsUnstarted: boolean;
  /** The next turn writes down which runs have begun, though nothing else calls for one. */
  tellBegun(): void;
  takeNews(): News;
  /** Takes back news that could not be written. */
  giveBack(news: News): void;
  /** Keeps room for jobs that are being claimed. */
  reserve(count: number): { release(): void };
  start(jobs: readonly ClaimedJob[]): void;
  /** Somebody asked to cancel the run, which need not be one of ours. */
  cancel(runId: string): void;
  abortAll(reason: DaybookError): void;
  /** Claims that are to be given back with the next turn. */
  unclaim(jobs: readonly Claimed[]): void;
  giveUnstartedBack(): void;
  drained(withinMs: number): Promise<void>;
  /** The worker has stopped. */
  leave(): void;
};

export function createRuns(
  engine: Engine,
  concurrency: number,
  tell: { ended(ms: number): void; changed(): void; mayStart(): boolean; readonly direct: boolean },
): RunsInHand {
  const { clock } = engine;
  const ready: ClaimedJob[] = [];
  const running = new Map<string, RunState>();
  const waiting: (() => void)[] = [];
  const desk = createNewsDesk((runId) => running.has(runId));
  let reserved = 0;
  const crew = crewOf(engine);
  const self: Member = {
    ready,
    get inHand() {
      return running.size + ready.length + reserved;
    },
    wake() {
      pump();
      tell.changed();
    },
  };
  const leave = crew.join(self);

  function pump(): void {
    if (ready.length === 0 || !tell.mayStart()) return;
    while (running.size < concurrency && ready.length > 0) {
      if (!tell.direct && !crew.mayStart(ready[0] as ClaimedJob)) return;
      execute(ready.shift() as ClaimedJob);
    }
  }

  const newState = (job: ClaimedJob): RunState => ({
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
  });

  const parts: Parameters<typeof run>[3] = {
    ended(state, ending) {
      if (ending !== undefined) desk.ended(ending);
      leftHand(state, ending?.durationMs);
    },
    now: () => clock.now(),
    changed(state) {
      desk.changed(state);
      tell.changed();
    },
    finish: (state, work) => finishRun(engine, state, parts, work),
    step: (state) => createStep(engine, state),
  };

  function execute(job: ClaimedJob): void {
    const state = newState(job);
    running.set(job.run_id, state);
    crew.started(job);
    if (job.timeout_ms !== null) desk.begins(state);
    if (startsOnDisk(job)) void begin(engine, job).then((ours) => (ours ? start(state) : notOurs(state)));
    else start(state);
  }

  function start(state: RunState): void {
    const definition = engine.definitions.get(state.job.name);
    // The claim takes only names that are defined here, so this is for the type.
    if (definition === undefined) notOurs(state);
    else run(engine, definition, state, parts);
  }

  function notOurs(state: RunState): void {
    desk.unclaim([state.job]);
    leftHand(state);
  }

  function leftHand({ job, startedMs }: RunState, durationMs = clock.monotonic() - startedMs): void {
    running.delete(job.run_id);
    crew.ended(job);
    if (running.size === 0 && ready.length === 0) for (const resolve of waiting.splice(0)) resolve();
    tell.ended(durationMs);
    pump();
    if (self.inHand === 0) crew.wakeOthers(self);
  }

  return {
    crew,
    leave,
    get inHand() {
      return self.inHand;
    },
    get hasNews() {
      return desk.hasNews;
    },
    get holdsUnstarted() {
      return ready.length > 0;
    },
    tellBegun: () => desk.tellBegun(),
    takeNews: () => desk.take(),
    giveBack: (news) => desk.giveBack(news),
    reserve(count) {
      reserved += count;
      return {
        release() {
          reserved -= count;
          if (self.inHand === 0) crew.wakeOthers(self);
        },
      };
    },
    start(jobs) {
      ready.push(...jobs);
      pump();
    },
    cancel(runId) {
      const state = running.get(runId);
      if (state !== undefined) return abortRun(state, cancelled());
      const place = ready.findIndex((job) => job.run_id === runId);
      if (place < 0) return;
      for (const job of ready.splice(place, 1)) {
        const unstarted = newState(job);
        abortRun(unstarted, cancelled());
        desk.ended(interrupted(engine, unstarted));
      }
      tell.changed();
      // It may have been the one that all of them waited for.
      if (self.inHand === 0) crew.wakeOthers(self);
    },
    unclaim: (jobs) => desk.unclaim(jobs),
    giveUnstartedBack: () => desk.unclaim(ready.splice(0)),
    abortAll(reason) {
      for (const state of running.values()) abortRun(state, reason);
    },
    drained(withinMs) {
      if (running.size === 0 && ready.length === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = Number.isFinite(withinMs) ? clock.after(withinMs, resolve, { keepAlive: true }) : undefined;
        waiting.push(() => {
          timer?.cancel();
          resolve();
        });
      });
    },
  };
}
