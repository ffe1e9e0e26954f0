// A remote worker asks for jobs, and waits until there are some. It claims as a worker of this process does, from the lanes of its
// own tenant, and gets a lease for each job in the transaction that claims it.
import { afterEither } from "../../core/clock.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { DaybookError, invalid } from "../../core/error.ts";
import { checkCount } from "../../core/count.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { findAlone, runsAlone, type Claimer } from "../claim/claim.ts";
import { newTurns } from "../claim/lane.ts";
import type { Engine } from "../engine.ts";
import { hostChannel, jobsChannel, queuedChannel } from "../job.ts";
import { jobsClaimed } from "../kind.ts";
import { createWake } from "../worker/wake.ts";
import { takeTurn, type Turn, type TurnWork } from "../worker/turn.ts";
import { granted, holdSession } from "./attach.ts";
import { returnLeases, watchLeases } from "./expire.ts";
import { giveLeases, type WorkerGrant, type Leased } from "./lease.ts";

export type WorkerClaimOptions = {
  /** How many at most; default 1. */
  readonly most?: number;
  /** How long to wait for one; default not at all, at most 30 s. */
  readonly wait?: Duration;
  /** How long each lease lasts unless it is renewed; default 30 s. */
  readonly lease?: Duration;
  /** Of those that it attached for, only these. */
  readonly names?: readonly string[];
  readonly queues?: readonly string[];
};

/** A job that a remote worker has, and the secret that ends it. */
export type LeasedJob = {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly params: unknown;
  readonly attempt: number;
  readonly attempts: number;
  readonly tags: readonly string[];
  readonly createdAt: number;
  readonly run: string;
  /** Shown this once: whoever has it may end the run. */
  readonly lease: string;
  /** When the lease ends unless it is renewed. */
  readonly expiresAt: number;
  /** When the run times out, whatever is renewed; null without a timeout. */
  readonly deadlineAt: number | null;
  readonly traceparent: string | null;
};

type Asked = { readonly tenant: string; readonly session: string; readonly grant: WorkerGrant | undefined };
type Terms = { readonly most: number; readonly lastsMs: number };

/** Claims up to `most` jobs, and waits for the first one. Nobody who no longer listens keeps a job. */
export async function pollJobs(
  engine: Engine,
  asked: Asked,
  options: WorkerClaimOptions,
  signal?: AbortSignal,
): Promise<LeasedJob[]> {
  const { store } = engine;
  const terms = {
    most: checkCount(options.most ?? 1, "most", 1, limits.leasedJobsMax),
    lastsMs: leaseMsOf(options.lease),
  };
  const waitMs = durationMs(options.wait ?? 0, "wait");
  if (waitMs > limits.pollMsMax) throw invalid(`wait is ${waitMs} ms: at most ${limits.pollMsMax}, then ask again`);
  const claimer = await claimerOf(engine, asked, options);
  await watchLeases(engine).expireDue();
  let poked = Promise.withResolvers<void>();
  const wake = createWake(store, () => poked.resolve());
  const stopListening = store.onWake((channel) => {
    if (channel === hostChannel || channel === null) wake.hostsChanged();
    if (channel === queuedChannel) return wake.look();
    if (channel === null) void wake.lookIfAny();
    else if (channel === jobsChannel || channel === hostChannel) wake.lookAnew();
  });
  let over = waitMs === 0;
  const end = (): void => {
    over = true;
    poked.resolve();
  };
  const timer = afterEither(store.clock, waitMs, end);
  signal?.addEventListener("abort", end, { once: true });
  try {
    for (;;) {
      poked = Promise.withResolvers<void>();
      if (signal?.aborted === true) return [];
      const { leased, looksAgain } = wake.mayHaveWork ? await take(engine, { asked, claimer, terms, wake }) : nothing;
      if (leased.length > 0) return await handOver(engine, asked, leased, signal);
      if (over) return [];
      if (!looksAgain) await poked.promise;
    }
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", end);
    stopListening();
    wake.stop();
  }
}

const nothing = { leased: [] as readonly Leased[], looksAgain: false };

export function leaseMsOf(lease: Duration | undefined): number {
  const ms = durationMs(lease ?? limits.leaseMs, "lease", { min: limits.leaseMsMin });
  if (ms <= limits.leaseMsMax) return ms;
  throw invalid(`lease is ${ms} ms: at most ${limits.leaseMsMax}, and renew it meanwhile`);
}

type Taking = {
  readonly asked: Asked;
  readonly claimer: Claimer;
  readonly terms: Terms;
  readonly wake: ReturnType<typeof createWake>;
};

async function take(engine: Engine, { asked, claimer, terms, wake }: Taking): Promise<typeof nothing> {
  const looking = wake.ask();
  const idle = { endings: [], logs: [], progress: [], want: terms.most, alone: false, ...looking };
  try {
    const done = await engine.store.write(
      (tx) => takeLeases(tx, engine, { asked, claimer, terms, work: { ...idle, attempted: [] } }),
      { tenant: asked.tenant, beat: false },
    );
    wake.learn({ ...idle, attempted: [] }, done.turn);
    return { leased: done.leased, looksAgain: wake.mayHaveWork };
  } catch (error) {
    wake.failed({ ...idle, attempted: [] });
    throw error;
  }
}

type Taken = { readonly turn: Turn; readonly leased: readonly Leased[] };

async function takeLeases(
  tx: Tx,
  engine: Engine,
  { asked, claimer, terms, work }: Omit<Taking, "wake"> & { readonly work: TurnWork },
): Promise<Taken> {
  const session = await holdSession(tx, asked.session, asked.grant);
  const held = await heldBy(tx, session.seq);
  // A job that must run alone has its worker for itself, so it comes first while the worker holds nothing.
  const want = held.some(runsAlone) ? 0 : Math.min(work.want, limits.leasesHeldMax - held.length);
  const isFirst = held.length === 0 && (await findAlone(tx, claimer)) !== undefined;
  const alone = isFirst ? await takeTurn(tx, engine, claimer, { ...work, want: 1, alone: true }) : undefined;
  const turn = alone?.claim.jobs.length === 1 ? alone : await takeTurn(tx, engine, claimer, { ...work, want });
  const { jobs } = turn.claim;
  // Asked last: a token that was revoked while this transaction waited gets nothing either.
  if (jobs.length > 0) await refuseEndedToken(tx, asked.grant);
  if (jobs.length > 0) tx.afterCommit(() => jobsClaimed.state({ count: jobs.length, sessionSeq: session.seq }));
  const leased = await giveLeases(tx, turn.claim.jobs, { sessionSeq: session.seq, lastsMs: terms.lastsMs });
  return { turn, leased };
}

/** A claim may have waited for half a minute: its token may have been revoked meanwhile, or have expired. */
async function refuseEndedToken(tx: Tx, grant: WorkerGrant | undefined): Promise<void> {
  if (grant?.tokenId == null) return;
  const ended = await tx.get(sql`select 1 as ended from daybook_token
    where id = ${grant.tokenId} and (revoked_at is not null or expires_at <= ${tx.now})`);
  if (ended !== undefined)
    throw new DaybookError("unauthorized", "the token of this worker was revoked, or has expired");
}

async function heldBy(tx: Tx, sessionSeq: number): Promise<{ alone: number }[]> {
  return tx.all(sql`select job.alone from daybook_lease lease
    join daybook_line line on line.seq = lease.job_seq and line.run_id = lease.run_id
    join daybook_job job on job.seq = line.seq
    where lease.session_seq = ${sessionSeq} and lease.closed_at is null`);
}

/** What this session claims: what it attached for, or of that what is asked. */
async function claimerOf(
  engine: Engine,
  { tenant, session: id }: Asked,
  { names, queues }: Pick<WorkerClaimOptions, "names" | "queues">,
): Promise<Claimer> {
  const its = sql`session.id = ${id} and session.kind = 'remote' and session.tenant_id = ${tenant}`;
  const attached = await engine.store.read<{ seq: number; name: string | null; queue: string | null }>(sql`
    select session.seq, host.name, null as queue
    from daybook_session session join daybook_session_host host on host.session_seq = session.seq where ${its}
    union all select session.seq, null, served.queue
    from daybook_session session join daybook_session_queue served on served.session_seq = session.seq where ${its}`);
  const allNames = attached.flatMap(({ name }) => name ?? []);
  const served = attached.flatMap(({ name, queue }) => (name === null ? [queue] : []));
  const allQueues = served.includes(null) ? null : served.flatMap((queue) => queue ?? []);
  // One that is not there is named by the transaction that looks for it.
  const isThere = attached.length > 0;
  const asked = granted(names, isThere ? allNames : null, "job", "names") ?? allNames;
  const chosen = granted(queues, isThere ? allQueues : null, "queue", "queues") ?? allQueues;
  const remembered = engine.store.keep("remote claimers", createMemory).of(id);
  return {
    sessionSeq: attached[0]?.seq ?? 0,
    hosts: new Set(asked),
    queues: chosen === null ? null : new Set(chosen),
    tenant,
    kinds: engine.kinds,
    turns: remembered.turns,
    hostCursors: remembered.hostCursors,
  };
}

const rememberedMax = 1000;

/** Whose turn it is, for each session; those that asked last are remembered. */
function createMemory() {
  const kept = new Map<string, Pick<Claimer, "turns" | "hostCursors">>();
  return {
    of(session: string) {
      const known = kept.get(session) ?? { turns: newTurns(), hostCursors: new Map<string, number>() };
      kept.delete(session);
      kept.set(session, known);
      for (const oldest of kept.keys()) if (kept.size > rememberedMax) kept.delete(oldest);
      return known;
    },
  };
}

async function handOver(
  engine: Engine,
  { tenant }: Asked,
  leased: readonly Leased[],
  signal: AbortSignal | undefined,
): Promise<LeasedJob[]> {
  watchLeases(engine).by(Math.min(...leased.map(({ expiresAt }) => expiresAt)));
  // Whoever left while the transaction was written is heard of in the next turn of the loop.
  for (let turn = 0; signal !== undefined && turn < 2; turn++) await engine.clock.nextTurn();
  if (signal?.aborted === true) {
    const runs = leased.map(({ job }) => job.run_id);
    await engine.store.write(
      (tx) => returnLeases(tx, engine, sql`lease.tenant_id = ${tenant} and lease.run_id ${anyOf("text", runs)}`),
      {
        tenant,
        beat: false,
      },
    );
    return [];
  }
  const jobs: LeasedJob[] = [];
  for (const each of leased) {
    // A large document takes its time to read, so each has a turn of the loop.
    if (each.job.params.length > largeLength) await engine.clock.nextTurn();
    jobs.push(toLeasedJob(each));
  }
  return jobs;
}

const largeLength = 65_536;

function toLeasedJob({ job, secret, expiresAt, deadlineAt }: Leased): LeasedJob {
  const { id, name, queue, attempt, attempts, traceparent } = job;
  return {
    id,
    name,
    queue,
    params: JSON.parse(job.params) as unknown,
    attempt,
    attempts,
    tags: job.tags === null ? [] : (JSON.parse(job.tags) as string[]),
    createdAt: job.created_at,
    run: job.run_id,
    lease: secret,
    expiresAt,
    deadlineAt,
    traceparent,
  };
}
