// A worker: claims jobs, runs them, settles them. It sleeps until a commit, a due time or its own runs wake it; there
// is no polling.
//
//   woken ──► turn (settle + claim, one transaction) ──► start what was claimed ──► ended runs wake it again
import type { Timer } from "../core/clock.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { checkCount } from "../core/count.ts";
import { DaybookError, isDaybookError } from "../core/error.ts";
import { jitter } from "../core/random.ts";
import { checkName } from "../core/name.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { createAlarm, type Alarm } from "./alarm.ts";
import { createBatchSize } from "./batch-size.ts";
import { readCancelled } from "./cancel.ts";
import type { Claimer } from "./claim.ts";
import type { Engine } from "./engine.ts";
import { jobsClaimed, jobSuperseded } from "./hooks.ts";
import { cancelChannel, hostChannel } from "./job.ts";
import type { Ending } from "./outcome.ts";
import { peek } from "./peek.ts";
import { createRecheck } from "./recheck.ts";
import { hostNames, sweep } from "./rescue.ts";
import { ownershipLost, shuttingDown } from "./run.ts";
import { createRuns } from "./runs-in-hand.ts";
import { takeTurn, type Turn, type TurnWork } from "./turn.ts";

export type WorkerOptions = {
  /** How many runs at the same time; default 10. */
  readonly concurrency?: number;
  /** Only these queues; default all. */
  readonly queues?: readonly string[];
  /** How many jobs to hold beyond the batch in hand; default 0. */
  readonly prefetch?: number;
  /** How long stop() waits for what runs before it asks it to end; default 30 s. */
  readonly grace?: Duration;
};

export type Worker = {
  /** Resolves when nothing runs and nothing that could run is left. */
  idle(): Promise<void>;
  /** Claims nothing more, waits for what runs (`grace`), then ends it; its jobs run again elsewhere. */
  stop(): Promise<void>;
  readonly running: number;
};

type Asked = { wakes: number; cancels: number; want: number; alarm: ReturnType<Alarm["ask"]> };

const known: readonly (keyof WorkerOptions)[] = ["concurrency", "queues", "prefetch", "grace"];
const sweepEveryMs = 15_000;
const retryMs = 200;
const emptyLooksMax = 50;

export async function startWorker(engine: Engine, options: WorkerOptions = {}): Promise<Worker> {
  refuseUnknown(options, known, "worker");
  const concurrency = checkCount(options.concurrency ?? 10, "concurrency", 1, 10_000);
  const prefetch = checkCount(options.prefetch ?? 0, "prefetch", 0, 10_000);
  const graceMs = durationMs(options.grace ?? "30s", "grace");
  const queues = options.queues === undefined ? null : new Set(options.queues.map((name) => checkName(name, "queue")));
  const { store, clock } = engine;

  const hosts = new Set(engine.definitions.keys());
  const claimer: Claimer = { sessionSeq: engine.session().seq, hosts, queues, cursor: 0, hostCursors: new Map() };
  const size = createBatchSize(concurrency);
  const runs = createRuns(engine, concurrency, { ended: onEnded, changed: () => poke(), mayStart });
  // On PostgreSQL one turn travels while another commits; but two may overtake each other, and a worker that runs one job
  // at a time is there for the order.
  const turnsMax = store.dialect === "postgres" && concurrency > 1 ? 2 : 1;
  const waitingForIdle: (() => void)[] = [];
  let session = engine.session();
  let mayHaveWork = true;
  let wakes = 0;
  const turns = new Set<Promise<void>>();
  let idleTurn = false;
  const recheck = createRecheck(engine, poke);
  let poked = false;
  let failures = 0;
  let stopping = false;
  let stopped: Promise<void> | undefined;
  let lookForHosted = true;
  let cancels = 0;
  const alarm = createAlarm(clock, look);
  let aloneLeft = false;
  let emptyLooks = 0;
  let sweepTimer: Timer | undefined;

  await hostNames(engine, claimer);
  const stopListening = store.onWake((channel) => {
    if (channel === cancelChannel || channel === null) void abortCancelled();
    if (channel === hostChannel || channel === null) lookForHosted = true;
    if (channel === cancelChannel) return;
    if (channel === null && isIdle()) return void lookAround();
    alarm.forget();
    look();
  });

  async function lookAround(): Promise<void> {
    if (!(await peek(store, alarm).catch(() => true))) return;
    alarm.forget();
    look();
  }

  function onEnded(ms: number): void {
    size.ran(ms);
    poke();
  }

  function look(): void {
    wakes++;
    emptyLooks = 0;
    mayHaveWork = true;
    poke();
  }

  function want(): number {
    if (stopping || !mayHaveWork || engine.overdue() || runs.crew.mustDrain()) return 0;
    // Beside a job that must run alone others would wait here, and share its fate, instead of running elsewhere.
    if (idleTurn || runs.crew.holdsAlone) return 0;
    const share = Math.ceil((size.current + prefetch) / turnsMax);
    return Math.max(0, Math.min(share, size.current + prefetch - runs.inHand));
  }

  function poke(): void {
    if (poked) return;
    poked = true;
    // A turn of the loop gathers what ends or arrives together.
    void clock.nextTurn().then(() => {
      poked = false;
      runs.start([]);
      if (aloneLeft && turns.size === 0 && runs.crew.idle) {
        aloneLeft = false;
        mayHaveWork = true;
      }
      while (turns.size < turnsMax && (runs.hasNews || want() > 0 || (mayNeedTurn() && recheck()))) void turn();
      if (turns.size === 0 && isIdle()) for (const resolve of waitingForIdle.splice(0)) resolve();
    });
  }

  function mayStart(): boolean {
    checkSession();
    return !engine.overdue();
  }
  const mayNeedTurn = (): boolean => !stopping && turns.size === 0 && (mayHaveWork || runs.holdsUnstarted);
  function isIdle(): boolean {
    return runs.inHand === 0 && !runs.hasNews && (!mayHaveWork || stopping);
  }

  function turn(): Promise<void> {
    const taken = take().finally(() => {
      turns.delete(taken);
      poke();
    });
    turns.add(taken);
    return taken;
  }

  async function take(): Promise<void> {
    const news = runs.takeNews();
    const asked = { wakes, cancels, want: want(), alarm: alarm.ask() };
    const work: TurnWork = {
      ...news,
      want: asked.want,
      attempted: [],
      idle: turns.size === 0 && runs.crew.idle,
      mayDrain: runs.crew.mayDrain(),
      lookForDue: asked.alarm.lookForDue,
      lookForHosted,
    };
    const reserved = runs.reserve(asked.want);
    if (work.idle && asked.want > 0) idleTurn = true;
    try {
      checkSession();
      const done = await store.write((tx) => takeTurn(tx, engine.hooks, claimer, work), { beat: false });
      failures = 0;
      reserved.release();
      afterTurn(done, work, asked);
    } catch (error) {
      reserved.release();
      runs.giveBack(news);
      if (work.idle) idleTurn = false;
      await afterFailure(error, work);
    }
  }

  function afterTurn(done: Turn, work: TurnWork, asked: Asked): void {
    if (work.idle) idleTurn = false;
    for (const ending of done.superseded) superseded(ending);
    alarm.learn(asked.alarm, done);
    if (work.lookForHosted && asked.wakes === wakes) lookForHosted = done.moreHosted;
    if (!done.alive) {
      // Its replacement is on its way; until then there is nothing to claim for.
      mayHaveWork = false;
      clock.after(retryMs, look);
      return;
    }
    const { jobs, leftAlone, more } = done.claim;
    if (asked.want > 0) {
      // Lanes that are all closed would be visited for ever; after a round of them only a wake or the sweep goes on.
      emptyLooks = jobs.length === 0 ? emptyLooks + 1 : 0;
      const mayHaveMore = jobs.length >= asked.want || (more && emptyLooks < emptyLooksMax) || done.moreHosted;
      mayHaveWork = mayHaveMore || wakes !== asked.wakes;
      if (leftAlone) {
        aloneLeft = true;
        runs.crew.drainForAlone();
      }
    } else if (work.endings.length > 0) {
      // An older turn that is still under way may have found nothing; this is news to it.
      wakes++;
      mayHaveWork = true;
    }
    if (jobs.length > 0) jobsClaimed.state({ count: jobs.length, sessionSeq: claimer.sessionSeq });
    if (stopping) runs.unclaim(jobs);
    else runs.start(jobs);
    // Somebody may have asked to cancel one of them before it was known here.
    if (jobs.length > 0 && asked.cancels !== cancels) void abortCancelled();
  }

  async function afterFailure(error: unknown, work: TurnWork): Promise<void> {
    failures++;
    if (isDaybookError(error) && error.code === "closed") {
      stopping = true;
      runs.abortAll(shuttingDown());
      return;
    }
    // Whether the claim was kept is not known: if it was, it goes back into the queue.
    if (isDaybookError(error) && error.code === "unknown_outcome") runs.unclaim(work.attempted);
    await clock.sleep(jitter(store.random, Math.min(5000, retryMs * 2 ** Math.min(failures, 5))));
  }

  function superseded(ending: Ending): void {
    jobSuperseded.state({ id: "", name: "", ...ending.job, runId: ending.runId, status: ending.status });
  }

  // Others took this session for dead: what it ran is no longer its own, and it goes on under a new one.
  function checkSession(): void {
    const current = engine.session();
    if (current.seq === session.seq) return;
    session = current;
    runs.giveUnstartedBack();
    runs.abortAll(ownershipLost());
    Object.assign(claimer, { sessionSeq: current.seq });
    void hostNames(engine, claimer).catch(() => undefined);
  }

  async function abortCancelled(): Promise<void> {
    cancels++;
    if (runs.inHand === 0) return;
    for (const id of await readCancelled(store, session.seq).catch(() => [])) runs.cancel(id);
  }

  async function sweepNow(): Promise<void> {
    await sweep(engine).catch(() => 0);
    if (stopping) return;
    void abortCancelled();
    alarm.forget();
    lookForHosted = true;
    look();
    sweepTimer = clock.after(jitter(store.random, sweepEveryMs), () => void sweepNow(), { keepAlive: true });
  }
  await sweepNow();

  return {
    get running() {
      return runs.inHand;
    },
    idle: () =>
      new Promise<void>((resolve) => {
        waitingForIdle.push(resolve);
        poke();
      }),
    stop: () => (stopped ??= stop()),
  };

  async function stop(): Promise<void> {
    stopping = true;
    alarm.stop();
    sweepTimer?.cancel();
    runs.giveUnstartedBack();
    poke();
    await runs.drained(graceMs);
    runs.abortAll(shuttingDown());
    await runs.drained(Number.POSITIVE_INFINITY);
    // A turn that is under way may bring jobs, which go back, or fail and leave its news.
    while (turns.size > 0 || (runs.hasNews && failures < 20)) await (turns.size > 0 ? Promise.all(turns) : turn());
    stopListening();
    runs.leave();
  }
}

export function refuseWithoutWorker(): never {
  throw new DaybookError("invalid", "the book was opened with worker: false, so it runs no jobs: open it without");
}
