// The engine without a book around it: a store, a session, and the engine's own steps, so that a test can take them one
// by one. What the front door would wire is wired here.
import type { TestContext } from "node:test";
import { manualClock, type ManualClock } from "../../src/core/manual-clock.ts";
import { claim, claimAlone, type Claim, type ClaimedJob, type Claimer } from "../../src/jobs/claim/claim.ts";
import { filesFolder, openStore, type StoreOptions } from "../../src/storage/open-store.ts";
import type { AnyJob } from "../../src/jobs/define.ts";
import { directJobs, directKind } from "../../src/jobs/direct/reservation.ts";
import type { Engine } from "../../src/jobs/engine.ts";
import { groupReads, groupVerbs, type Groups } from "../../src/jobs/group/groups.ts";
import { jobReads, jobVerbs, lookUp, type Jobs } from "../../src/jobs/jobs.ts";
import { settle, type Ending, type Settled } from "../../src/jobs/settle/settle.ts";
import { newTurns } from "../../src/jobs/claim/lane.ts";
import { queueReads, queueVerbs, type Queues } from "../../src/jobs/queues.ts";
import { takeTurn, type Turn, type TurnWork } from "../../src/jobs/worker/turn.ts";
import { migrations } from "../../src/open/migrations.ts";
import { collect } from "../../src/open/use.ts";
import { rawSql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import { thisProcess } from "../../src/telemetry/process-identity.ts";
import { startSession, type SessionKey } from "../../src/telemetry/session.ts";
import { cleanup, bookUrl, type Backend } from "../support/open-test.ts";

/** How a test begins: on a fresh file or database, or in memory, which is the fastest. */
export type EngineOptions = Partial<Pick<StoreOptions, "fault" | "random" | "waitClock">> & {
  readonly use?: readonly AnyJob[];
  readonly url?: string;
  readonly clock?: ManualClock;
};

export type TestEngine = {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly engine: Engine;
  /** The session of `claim` when it is not told another. */
  readonly session: SessionKey;
  readonly url: string;
  readonly jobs: Jobs;
  readonly queues: Queues;
  readonly groups: Groups;
  tenant(id: string): { readonly jobs: Jobs; readonly groups: Groups; readonly queues: Queues };
  newSession(): Promise<SessionKey>;
  claimer(sessionSeq?: number): Claimer;
  /** Claims like an idle worker. */
  claim(want: number, by?: Claimer): Promise<readonly ClaimedJob[]>;
  /** The first of one queue of the default tenant. */
  claimFrom(queue: string): Promise<ClaimedJob | undefined>;
  claimFully(want: number, by?: Claimer): Promise<Claim>;
  /** Claims one that must run alone, as a worker of an empty process. */
  claimAlone(by?: Claimer): Promise<Claim>;
  /** One turn of a worker that wants `want` jobs, with everything else as given. */
  turn(want: number, by: Claimer, work?: Partial<TurnWork>): Promise<Turn>;
  end(job: Pick<ClaimedJob, "seq" | "run_id">, how: Partial<Ending> & Pick<Ending, "status">): Promise<Settled>;
  rows<R>(statement: string): Promise<R[]>;
  run(statement: string): Promise<number>;
  /** Everything that jobs are made of, for comparing before and after. */
  dump(): Promise<unknown>;
};

export async function openEngine(
  t: TestContext,
  backend: Backend | "memory",
  options: EngineOptions = {},
): Promise<TestEngine> {
  const { use = [], clock = manualClock(), ...rest } = options;
  const url = rest.url ?? (backend === "memory" ? ":memory:" : await bookUrl(t, backend));
  const store = await openStore(url, migrations, { ...rest, clock });
  cleanup(t, () => store.close());
  const newSession = (): Promise<SessionKey> => store.write((tx) => startSession(tx, thisProcess(), "{}"));
  const session = await newSession();
  const engine: Engine = {
    store,
    clock,
    definitions: collect(use).definitions,
    kinds: { [directKind]: directJobs },
    files: filesFolder(url, undefined),
    session: () => session,
    overdue: () => false,
    onTimely: () => () => undefined,
    contextFor: (run) => run,
  };
  const tenant: TestEngine["tenant"] = (id) => {
    const within: Parameters<typeof jobVerbs>[2] = (unit, { shared } = { shared: false }) =>
      store.write(unit, { by: shared ? "shared" : "engine", tenant: id });
    return {
      jobs: { ...jobVerbs(engine, { tenant: id, strict: true }, within), ...jobReads(engine, id) },
      groups: {
        ...groupVerbs(engine, (wanted) => lookUp(engine, wanted, { tenant: id, strict: true }), within),
        ...groupReads(store, id),
      },
      queues: { ...queueVerbs(within), ...queueReads(store, id) },
    };
  };
  const claimer = (sessionSeq = session.seq): Claimer => newClaimer(sessionSeq, use);
  const usual = claimer();
  const claimFully: TestEngine["claimFully"] = (want, by = usual) => store.write((tx) => claim(tx, by, want, []));
  const rows = <R>(statement: string): Promise<R[]> => store.read<R>(rawSql(statement));
  return {
    store,
    clock,
    engine,
    session,
    url,
    tenant,
    newSession,
    claimer,
    claimFully,
    rows,
    ...tenant("default"),
    claimAlone: (by = usual) => store.write((tx) => claimAlone(tx, by, [])),
    claim: async (want, by) => (await claimFully(want, by)).jobs,
    async claimFrom(queue) {
      const by = { ...claimer(), queues: new Set([queue]) };
      return (await claimFully(1, by)).jobs[0];
    },
    turn: (want, by, work = {}) =>
      store.write((tx) => takeTurn(tx, engine, by, { ...quietTurn, attempted: [], want, ...work })),
    end: (job, how) =>
      store.write((tx) => settle(tx, engine, [{ seq: job.seq, runId: job.run_id, durationMs: 1, ...how }])),
    run: (statement) => store.write((tx) => tx.run(rawSql(statement))),
    dump: async () => [
      await rows("select * from daybook_job order by seq"),
      await rows("select * from daybook_line order by seq"),
      await rows("select * from daybook_job_key order by job_seq"),
      await rows("select * from daybook_permit order by job_seq, limit_key"),
      await rows("select * from daybook_run order by seq"),
      await rows("select * from daybook_lane order by seq"),
      await rows("select * from daybook_rate_window order by tenant_id, rate_key"),
    ],
  };
}

const quietTurn: Omit<TurnWork, "want" | "attempted"> = {
  endings: [],
  logs: [],
  progress: [],
  alone: false,
  lookForDue: false,
  lookForHosted: false,
};

export function newClaimer(sessionSeq: number, use: readonly AnyJob[]): Claimer {
  return {
    sessionSeq,
    hosts: new Set(use.map((each) => each.name)),
    queues: null,
    turns: newTurns(),
    hostCursors: new Map(),
    kinds: {},
  };
}
