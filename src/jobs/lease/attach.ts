// A remote worker attaches: it gets a session of its own, which says what it runs, and leaves again.
import { hostname } from "node:os";
import { conflict, DaybookError, invalid, notFound } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { forUpdate } from "../../storage/word.ts";
import { beatStatement, startRemoteSession, stopSession, type SessionStatus } from "../../telemetry/session.ts";
import type { Engine } from "../engine.ts";
import { writeHosted } from "../host.ts";
import { hostChannel } from "../job.ts";
import type { Ports } from "../kind.ts";
import { returnLeases } from "./expire.ts";
import { refuseOtherToken, type WorkerGrant } from "./lease.ts";

export type WorkerAttachOptions = {
  /** What it runs: names of jobs. Default: those that its token names. */
  readonly names?: readonly string[];
  /** Only from these queues. Default: those that its token names, or else all. */
  readonly queues?: readonly string[];
  /** Where it runs, for people; default: this machine. */
  readonly host?: string;
  readonly pid?: number;
  /** Any JSON object, kept with the session: a version, a language. */
  readonly metadata?: Record<string, unknown>;
};

export type AttachedWorker = {
  /** The id of its session. */
  readonly session: string;
  readonly names: readonly string[];
  /** Null: all of its tenant. */
  readonly queues: readonly string[] | null;
};

export async function attachWorker(
  engine: Engine,
  tenant: string,
  { names: wanted, queues: served, host = hostname(), pid = 0, metadata = {} }: WorkerAttachOptions,
  grant: WorkerGrant | undefined,
): Promise<AttachedWorker> {
  const names = granted(wanted ?? grant?.names ?? undefined, grant?.names, "job", "names");
  if (names === undefined || names.length === 0) throw invalid("names is missing: say which jobs this worker runs");
  if (names.length > limits.remoteNamesMax) {
    throw invalid(`${names.length} names: at most ${limits.remoteNamesMax}, so attach another worker for the rest`);
  }
  for (const name of names) refuseOwned(engine, name);
  const queues = granted(served ?? grant?.queues ?? undefined, grant?.queues, "queue", "queues") ?? null;
  if (queues !== null && (queues.length === 0 || queues.length > limits.remoteNamesMax)) {
    throw invalid(`${queues.length} queues: give 1 to ${limits.remoteNamesMax}, or none for all`);
  }
  const about = {
    tenant,
    tokenId: grant?.tokenId ?? null,
    host: checkName(host, "host"),
    pid,
    metadata: toJson(metadata, { what: "metadata" }),
  };
  const session = await engine.store.write(
    async (tx) => {
      const made = await startRemoteSession(tx, about);
      await writeHosted(tx, made.seq, names, queues);
      tx.wake(hostChannel);
      return made;
    },
    { tenant, beat: false },
  );
  return { session: session.id, names, queues };
}

/** What is asked for, each once. A token that names some may not ask for others. */
export function granted(
  asked: readonly string[] | undefined,
  allowed: readonly string[] | null | undefined,
  what: string,
  list: string,
): readonly string[] | undefined {
  if (asked === undefined) return undefined;
  if (!Array.isArray(asked)) throw invalid(`${list} is ${quote(asked)}: give a list of names, such as ["mail"]`);
  const all = [...new Set(asked.map((name: string) => checkName(name, what)))];
  const over = allowed == null ? undefined : all.find((name) => !allowed.includes(name));
  if (over === undefined) return all;
  const only = `it is for ${list} ${(allowed ?? []).join(", ")}`;
  throw new DaybookError("forbidden", `this worker may not run ${what} ${quote(over)}: ${only}`);
}

// What another room makes for itself (a delivery, a call) speaks of rows that only its own handler can read.
function refuseOwned({ kinds }: Pick<Ports, "kinds">, name: string): void {
  const owner = Object.entries(kinds).find(([, kind]) => kind.ownsName(name));
  if (owner === undefined) return;
  throw invalid(`job ${quote(name)} is made by the book itself (${owner[0]}): a remote worker cannot run it`);
}

export type RemoteSession = {
  readonly seq: number;
  readonly id: string;
  readonly status: SessionStatus;
  readonly token_id: string | null;
};

/** The session of a worker, locked; the request is a beat of it. One that has ended is a conflict. */
export async function holdSession(tx: Tx, id: string, grant: WorkerGrant | undefined): Promise<RemoteSession> {
  const session = await tx.get<RemoteSession>(sql`select seq, id, status, token_id from daybook_session session
    where id = ${id} and kind = 'remote' and tenant_id = ${tx.tenant} ${forUpdate}`);
  if (session === undefined) throw notFound(`there is no remote worker with the session ${id}`, { id });
  refuseOtherToken(session, grant, "session");
  const beaten = await tx.run(beatStatement(id, tx.now));
  if (beaten > 0) return session;
  const { status } = session;
  throw conflict(`the session ${id} of this worker has ended (${status}): attach again`, { id, status });
}

export type WorkerLeft = {
  readonly session: string;
  /** How many jobs it still held: they begin again elsewhere, and nothing is counted. */
  readonly returned: number;
};

export async function leave(
  engine: Engine,
  tenant: string,
  id: string,
  grant: WorkerGrant | undefined,
): Promise<WorkerLeft> {
  return engine.store.write(
    async (tx) => {
      const { seq } = await holdSession(tx, id, grant);
      const returned = await returnLeases(tx, engine, sql`lease.session_seq = ${seq}`);
      await stopSession(tx, id);
      return { session: id, returned };
    },
    { tenant, beat: false },
  );
}
