// A worker: claims jobs, runs them, settles them. It claims only as many as it has free places, and what it claims starts at
// once, so whatever does not run is in line, where order, pause, limits, cancel and other workers see it.
//
//   woken ──► turn (settle + claim, one transaction) ──► start what was claimed ──► ended runs wake it again
import type { Timer } from "../../core/clock.ts";
import { isDaybookError, type ErrorCode } from "../../core/error.ts";
import { jitter } from "../../core/id.ts";
import { readCancelled } from "../settle/cancel.ts";
import { recallClaim, type ClaimedJob, type Claimer } from "../claim/claim.ts";
import type { Claimed } from "../state.ts";
import type { Engine } from "../engine.ts";
import { jobsClaimed } from "../kind.ts";
import { onHosting } from "../definition.ts";
import { cancelChannel, hostChannel, jobsChannel, queuedChannel } from "../job.ts";
import { hostNames } from "../host.ts";
import { sweep } from "../settle/rescue.ts";
import { ownershipLost, shuttingDown } from "../run/run.ts";
import { tellSuperseded } from "../settle/settle.ts";
import { takeTurn, type TurnWork } from "./turn.ts";
import { lookAgain } from "../result.ts";
import { passing, writeApart, createRuns, type Pending } from "./runs.ts";
import { createWake } from "./wake.ts";
import type { Worker, WorkerSettings } from "./start-worker.ts";

const sweepEveryMs = 15_000;
const retryMs = 200;
const recheckMs = 200;
/** How long a handler has to heed its signal before stop() goes on without it. */
const heedMs = 1000;
const deafEveryMs = 5000;

/** A claim whose commit was not confirmed, and the places that it may fill. */
type Doubtful = { readonly claimed: readonly Claimed[]; release(): void };

/** From here on others may wake it, so nothing is awaited before it is whole. The caller sweeps at once. */
export function createWorker(
  engine: Engine,
  { concurrency, graceMs }: WorkerSettings,
  claimer: Claimer,
  renew: () => Promise<void> | undefined,
): { worker: Worker; sweepNow(): Promise<void> } {
  const { store, clock } = engine;
  const runs = createRuns(engine, poke);
  const { quarantine, pending } = runs;
  const wake = createWake(store, poke);
  const waitingForIdle: (() => void)[] = [];
  let session = engine.session();
  let turning: Promise<void> | undefined;
  let doubtful: Doubtful | undefined;
  let cancelsAsked = 0;
  let poked = false;
  let failures = 0;
  let stopping = false;
  let stopped: Promise<void> | undefined;
  let left: Promise<void> | undefined;
  let sweepTimer: Timer | undefined;
  let recheckTimer: Timer | undefined;
  let deafTimer: Timer | undefined;

  const stopListening = store.onWake((channel) => {
    if (channel === cancelChannel || channel === null) void heedCancels();
    if (channel === hostChannel || channel === null) wake.hostsChanged();
    if (channel === queuedChannel) return wake.look();
    if (channel !== null && channel !== jobsChannel && channel !== hostChannel) return;
    if (channel === null && isIdle() && claimer.reserved === undefined) void wake.lookIfAny();
    else wake.lookAnew();
  });

  // A worker that serves a reservation runs its one job, whatever else is defined here.
  const stopHosting = onHosting(engine, async (ceased) => {
    if (ceased.length > 0) runs.abortAll(shuttingDown("its app is stopped in this process"), new Set(ceased));
    if (claimer.reserved !== undefined) return;
    Object.assign(claimer, { hosts: new Set(engine.definitions.keys()) });
    await hostNames(engine, claimer);
    wake.hostsChanged();
    wake.lookAnew();
  });

  // A beat that was late has been written, or the session was replaced: the handlers of a lost one are told at once, also
  // when all places are taken and no turn is due.
  const stopRechecking = engine.onTimely(() => {
    checkSession();
    poke();
  });

  // What it knows of due times, and what was let in or parked by them, was computed by the clock as it was before.
  const stopHearing = store.time.onSet(() => void sweepNow());

  function isIdle(): boolean {
    const settled = runs.inHand === 0 && !pending.any && turning === undefined;
    return settled && (!wake.expectsWork || stopping);
  }

  function freePlaces(): number {
    if (stopping || engine.overdue()) return 0;
    // Direct work may have been asked for by the very job that runs alone.
    if (claimer.reserved !== undefined) return runs.inHand === 0 ? 1 : 0;
    if (quarantine.closed || quarantine.mustDrain()) return 0;
    return Math.max(0, concurrency - runs.inHand);
  }

  function needsTurn(): boolean {
    if (pending.any || doubtful !== undefined) return true;
    return wake.mayHaveWork && (freePlaces() > 0 || mustRecheck());
  }

  // An overdue session claims nothing, because others may take it for dead. A turn stamps its beat, or finds it ended.
  function mustRecheck(): boolean {
    if (stopping || recheckTimer !== undefined || !engine.overdue()) return false;
    recheckTimer = store.waitClock.after(recheckMs, () => {
      recheckTimer = undefined;
      poke();
    });
    return true;
  }

  function poke(): void {
    if (poked) return;
    poked = true;
    // A turn of the loop gathers what ends or arrives together.
    void clock.nextTurn().then(() => {
      poked = false;
      if (turning !== undefined) return;
      if (quarantine.idle) wake.nothingRuns();
      if (needsTurn()) void turn();
      else if (isIdle()) for (const resolve of waitingForIdle.splice(0)) resolve();
    });
  }

  function turn(): Promise<void> {
    return (turning = take().finally(() => {
      turning = undefined;
      poke();
    }));
  }

  async function take(): Promise<void> {
    if (doubtful !== undefined && !(await recall(doubtful))) return;
    const alone = wake.leftAlone && claimer.reserved === undefined && !stopping && runs.enterAlone();
    const want = alone ? 1 : freePlaces();
    const release = runs.reserve(want);
    const asked = cancelsAsked;
    const work: TurnWork = { ...pending.take(), ...wake.ask(), want, alone, attempted: [] };
    try {
      checkSession();
      const done = await store.write((tx) => takeTurn(tx, engine, claimer, work), { beat: false, turn: "worker" });
      failures = 0;
      wake.learn(work, done);
      tellSuperseded(done.superseded);
      if (wake.leftAlone) quarantine.drain();
      begin(done.claim.jobs, asked);
      release();
    } catch (error) {
      // Whether the claim is on disk is not known: its places stay taken until the book has said.
      if (codeOf(error) === "unknown_outcome" && work.attempted.length > 0) {
        doubtful = { claimed: work.attempted, release: runs.reserve(work.attempted.length) };
      }
      release();
      wake.failed(work);
      await afterFailure(error, work);
    } finally {
      if (alone) runs.leaveAlone();
    }
  }

  /** Starts what a claim has taken whose commit was not confirmed; false when the book could not say. */
  async function recall({ claimed, release }: Doubtful): Promise<boolean> {
    const asked = cancelsAsked;
    try {
      checkSession();
      const jobs = await store.write((tx) => recallClaim(tx, claimer, claimed), { beat: false });
      doubtful = undefined;
      begin(jobs, asked);
      release();
      return true;
    } catch (error) {
      await afterFailure(error);
      return false;
    }
  }

  function begin(jobs: readonly ClaimedJob[], asked: number): void {
    if (jobs.length === 0) return;
    jobsClaimed.state({ count: jobs.length, sessionSeq: claimer.sessionSeq });
    runs.start(jobs);
    // A user may have asked to cancel one of them before it was known here.
    if (asked !== cancelsAsked) void heedCancels();
  }

  async function afterFailure(error: unknown, work?: Pending): Promise<void> {
    failures++;
    const code = codeOf(error);
    if (code === "closed") {
      // Nothing can be written any more. The process that recovers this session ends what it ran.
      stopping = true;
      runs.abortAll(shuttingDown());
      return;
    }
    const passes = code !== undefined && passing.has(code);
    if (work !== undefined) pending.giveBack(passes ? work : await writeApart(engine, work, failures));
    await store.waitClock.sleep(jitter(store.random, Math.min(5000, retryMs * 2 ** Math.min(failures, 5))));
  }

  // Others took this session for dead: what it ran is no longer its own, and it goes on under a new one.
  function checkSession(): void {
    const current = engine.session();
    if (current.seq === session.seq) return;
    session = current;
    runs.abortAll(ownershipLost());
    Object.assign(claimer, { sessionSeq: current.seq });
    void hostNames(engine, claimer).catch(() => undefined);
  }

  async function heedCancels(): Promise<void> {
    cancelsAsked++;
    if (runs.inHand === 0) return;
    for (const id of await readCancelled(store, session.seq).catch(() => [])) runs.cancel(id);
  }

  async function sweepNow(): Promise<void> {
    sweepTimer?.cancel();
    await sweep(engine).catch(() => 0);
    if (!stopping) await renew()?.catch(() => undefined);
    if (stopping) return;
    void heedCancels();
    wake.hostsChanged();
    wake.lookAnew();
    sweepTimer?.cancel();
    // A run that is alone and waits for another's job finds out that the other process is gone.
    if (quarantine.closed) lookAgain(store);
    sweepTimer = clock.after(jitter(store.random, sweepEveryMs), () => void sweepNow(), { keepAlive: true });
  }

  async function stop(): Promise<void> {
    stopping = true;
    wake.stop();
    sweepTimer?.cancel();
    recheckTimer?.cancel();
    // A claim that is under way may bring jobs, which get their time to end like the others.
    while (turning !== undefined || (doubtful !== undefined && failures < 20)) await (turning ?? turn());
    poke();
    await runs.drained(graceMs);
    runs.abortAll(shuttingDown());
    await runs.drained(heedMs);
    while (turning !== undefined || (pending.any && failures < 20)) await (turning ?? turn());
    // A handler that ignores its signal still works, so no other may: its run is ours until it ends, and is settled then.
    left = end();
    if (runs.inHand === 0) await left;
  }

  async function end(): Promise<void> {
    if (runs.inHand > 0) lookAfterDeaf();
    await runs.drained(Number.POSITIVE_INFINITY);
    deafTimer?.cancel();
    while (turning !== undefined || (pending.any && failures < 20)) await (turning ?? turn());
    stopListening();
    stopHearing();
    stopHosting();
    stopRechecking();
    runs.leave();
  }

  // A handler that ignored the shutdown may still be cancelled, and direct work holds its queue until it ends. A store that keeps no
  // process alive does not hear others on PostgreSQL, so this asks.
  function lookAfterDeaf(): void {
    const look = async (): Promise<void> => {
      await heedCancels();
      await renew()?.catch(() => undefined);
      if (runs.inHand > 0) lookAfterDeaf();
    };
    deafTimer = clock.after(jitter(store.random, deafEveryMs), () => void look());
  }

  const worker: Worker = {
    get running() {
      return runs.inHand;
    },
    idle() {
      const idle = Promise.withResolvers<void>();
      waitingForIdle.push(idle.resolve);
      poke();
      return idle.promise;
    },
    stop: () => (stopped ??= stop()),
    ended: async () => {
      await stopped;
      await left;
    },
  };
  return { worker, sweepNow };
}

function codeOf(error: unknown): ErrorCode | undefined {
  return isDaybookError(error) ? error.code : undefined;
}
