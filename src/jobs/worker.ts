// A worker: claims jobs, runs them, settles them. It sleeps until a commit, a due time or its own runs wake it; there
// is no polling.
//
//   woken ──► turn (settle + claim, one transaction) ──► start what was claimed ──► ended runs wake it again
import type { Timer } from "../core/clock.ts";
import { isDaybookError } from "../core/error.ts";
import { jitter } from "../core/random.ts";
import { createBatchSize } from "./batch-size.ts";
import type { Claimer } from "./claim.ts";
import type { Engine } from "./engine.ts";
import { jobsClaimed } from "./hooks.ts";
import { createCancels } from "./heed-cancels.ts";
import { onHosting } from "./hosting.ts";
import { cancelChannel, hostChannel, jobsChannel, queuedChannel } from "./job.ts";
import { createOutlook } from "./outlook.ts";
import { createRecheck } from "./recheck.ts";
import { hostNames, sweep } from "./rescue.ts";
import { ownershipLost, shuttingDown } from "./run.ts";
import { createRuns } from "./runs-in-hand.ts";
import { tellSuperseded } from "./superseded.ts";
import { apart, passing } from "./write-apart.ts";
import { takeTurn, type Turn, type TurnWork } from "./turn.ts";
import { lookAgain } from "./waiters.ts";
import type { Worker, WorkerSettings } from "./worker-options.ts";

const sweepEveryMs = 15_000;
const retryMs = 200;

/** From here on others may wake it, so nothing is awaited before it is whole. It is to be swept at once. */
export function createWorker(
  engine: Engine,
  { concurrency, prefetch, graceMs }: WorkerSettings,
  claimer: Claimer,
  renew: () => Promise<void> | undefined,
): { worker: Worker; sweepNow(): Promise<void> } {
  const { store, clock } = engine;
  const size = createBatchSize(concurrency);
  const runs = createRuns(engine, concurrency, {
    ...{ ended: onEnded, changed: poke, mayStart },
    direct: claimer.reserved !== undefined,
  });
  const outlook = createOutlook(clock, store, poke);
  const recheck = createRecheck(engine, poke);
  const cancels = createCancels(store, runs, () => session.seq);
  // On PostgreSQL one turn travels while another commits; but two may overtake each other, and a worker that runs one job
  // at a time is there for the order.
  const turnsMax = store.dialect === "postgres" && concurrency > 1 ? 2 : 1;
  const turns = new Set<Promise<void>>();
  const waitingForIdle: (() => void)[] = [];
  let session = engine.session();
  let idleTurn = false;
  let poked = false;
  let failures = 0;
  let stopping = false;
  let stopped: Promise<void> | undefined;
  let sweepTimer: Timer | undefined;

  const stopListening = store.onWake((channel) => {
    if (channel === cancelChannel || channel === null) void cancels.heed();
    if (channel === hostChannel || channel === null) outlook.hostsChanged();
    if (channel === queuedChannel) return outlook.look();
    if (channel !== null && channel !== jobsChannel && channel !== hostChannel) return;
    if (channel === null && isIdle() && claimer.reserved === undefined) void outlook.lookIfAny();
    else outlook.lookAnew();
  });

  // Who serves a reservation runs what it was told to, whatever else is defined here.
  const stopHosting = onHosting(engine, async () => {
    if (claimer.reserved !== undefined) return;
    Object.assign(claimer, { hosts: new Set(engine.definitions.keys()) });
    await hostNames(engine, claimer);
    outlook.hostsChanged();
    outlook.lookAnew();
  });

  const stopRechecking = engine.onTimely(poke);

  function onEnded(ms: number): void {
    size.ran(ms);
    poke();
  }

  function mayStart(): boolean {
    checkSession();
    return !engine.overdue();
  }

  function isIdle(): boolean {
    return runs.inHand === 0 && !runs.hasNews && (!outlook.expectsWork || stopping);
  }

  function want(): number {
    if (stopping || !outlook.mayHaveWork || engine.overdue()) return 0;
    // Direct work is waited for here: the one who asked may be the very job that runs alone.
    if (claimer.reserved !== undefined) return runs.inHand === 0 && turns.size === 0 ? 1 : 0;
    // Beside a job that must run alone others would wait here, and share its fate, instead of running elsewhere.
    if (runs.crew.mustDrain() || idleTurn || runs.crew.holdsAlone) return 0;
    const share = Math.ceil((size.current + prefetch) / turnsMax);
    return Math.max(0, Math.min(share, size.current + prefetch - runs.inHand));
  }

  function needsTurn(): boolean {
    if (runs.hasNews || want() > 0) return true;
    return !stopping && turns.size === 0 && (outlook.mayHaveWork || runs.holdsUnstarted) && recheck();
  }

  function poke(): void {
    if (poked) return;
    poked = true;
    // A turn of the loop gathers what ends or arrives together.
    void clock.nextTurn().then(() => {
      poked = false;
      runs.start([]);
      if (turns.size === 0 && runs.crew.idle) outlook.nothingRuns();
      while (turns.size < turnsMax && needsTurn()) void turn();
      if (turns.size === 0 && isIdle()) for (const resolve of waitingForIdle.splice(0)) resolve();
    });
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
    const asked = outlook.ask();
    const askedCancels = cancels.asked;
    const work: TurnWork = {
      ...{ ...news, want: want(), attempted: [], idle: turns.size === 0 && runs.crew.idle },
      ...{ mayDrain: runs.crew.mayDrain(), lookForDue: asked.alarm.lookForDue, lookForHosted: asked.hosted },
    };
    const reserved = runs.reserve(work.want);
    if (work.idle && work.want > 0) idleTurn = true;
    const over = (): void => {
      reserved.release();
      if (work.idle) idleTurn = false;
    };
    try {
      checkSession();
      const done = await store.write((tx) => takeTurn(tx, engine.hooks, claimer, work), { beat: false });
      failures = 0;
      over();
      outlook.learn(asked, work, done);
      begin(done, askedCancels);
    } catch (error) {
      over();
      outlook.failed(asked);
      await afterFailure(error, work);
    }
  }

  function begin({ superseded, claim: { jobs, leftAlone } }: Turn, askedCancels: number): void {
    tellSuperseded(superseded);
    if (leftAlone) runs.crew.drainForAlone();
    if (jobs.length === 0) return;
    jobsClaimed.state({ count: jobs.length, sessionSeq: claimer.sessionSeq });
    if (stopping) runs.unclaim(jobs);
    else runs.start(jobs);
    // Somebody may have asked to cancel one of them before it was known here.
    if (askedCancels !== cancels.asked) void cancels.heed();
  }

  async function afterFailure(error: unknown, work: TurnWork): Promise<void> {
    failures++;
    if (isDaybookError(error) && error.code === "closed") {
      // Nothing can be written any more. What was not is found by whoever recovers this session.
      stopping = true;
      runs.abortAll(shuttingDown());
      return;
    }
    const transient = isDaybookError(error) && passing.has(error.code);
    runs.giveBack(transient ? work : await apart(engine, work, failures));
    // Whether the claim was kept is not known: if it was, it goes back into the queue.
    if (isDaybookError(error) && error.code === "unknown_outcome") runs.unclaim(work.attempted);
    await clock.sleep(jitter(store.random, Math.min(5000, retryMs * 2 ** Math.min(failures, 5))));
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

  async function sweepNow(): Promise<void> {
    await sweep(engine).catch(() => 0);
    if (!stopping) await renew()?.catch(() => undefined);
    if (stopping) return;
    void cancels.heed();
    runs.tellBegun();
    outlook.hostsChanged();
    outlook.lookAnew();
    // Who runs alone and waits for another's job finds out that the other one is gone.
    if (runs.crew.holdsAlone) lookAgain(store);
    sweepTimer = clock.after(jitter(store.random, sweepEveryMs), () => void sweepNow(), { keepAlive: true });
  }

  async function stop(): Promise<void> {
    stopping = true;
    outlook.stop();
    sweepTimer?.cancel();
    runs.giveUnstartedBack();
    poke();
    await runs.drained(graceMs);
    runs.abortAll(shuttingDown());
    await runs.drained(Number.POSITIVE_INFINITY);
    // A turn that is under way may bring jobs, which go back, or fail and leave its news.
    while (turns.size > 0 || (runs.hasNews && failures < 20)) await (turns.size > 0 ? Promise.all(turns) : turn());
    stopListening();
    stopHosting();
    stopRechecking();
    runs.leave();
  }

  const worker: Worker = {
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
  return { worker, sweepNow };
}
