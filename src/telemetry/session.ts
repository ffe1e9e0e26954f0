// A session is one running process attached to the book. Its row is written once when it starts, stamped while it
// lives, and ends exactly once. A remote worker's session is of the kind `remote`: its requests are its beats, and what it runs it holds
// by leases (jobs/lease), so nobody watches its silence here.
//
//   running ──► success   it closed the book
//           ──► error     an uncaught exception ended it
//           ──► unknown   another session saw it fall silent; stopped_at is then its last heartbeat
import type { ErrorDescription } from "../core/error.ts";
import { defineFact } from "../core/fact.ts";
import { checkPage, type Page } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { shape, shapePage } from "../storage/shape.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Row, Store, Tx } from "../storage/store.ts";
import { anyOf, greatest } from "../storage/word.ts";
import type { Attachment } from "./attach.ts";
import { isProvablyGone, thisProcess, type ProcessIdentity } from "./process-identity.ts";
import { wholeName } from "./rollup/series.ts";

export type SessionStatus = "running" | "success" | "error" | "unknown";

/** A process that has the book open, or a worker that reaches it through one. */
export type SessionKind = "process" | "remote";

export type SessionRow = {
  seq: number;
  id: string;
  kind: SessionKind;
  host: string;
  host_boot: string | null;
  host_namespace: string | null;
  pid: number;
  process_started: string | null;
  started_at: number;
  beat: number;
  last_heartbeat_at: number;
  stopped_at: number | null;
  status: SessionStatus;
  error_type: string | null;
  error_message: string | null;
  error_trace: string | null;
  metadata: string;
  /** Runs and log lines of live listeners that telemetry could not record, and events they were too busy to hear. */
  dropped_runs: number;
  dropped_logs: number;
  dropped_events: number;
};

/** Hot tables point at a session by its `seq`; people and other systems know it by its `id`. */
export type SessionKey = { readonly id: string; readonly seq: number };

export const sessionStarted = defineFact<{ id: string; pid: number; host: string }>("session.started");
export const sessionStopped = defineFact<{ id: string; status: SessionStatus }>("session.stopped");

export async function startSession(tx: Tx, identity: ProcessIdentity, metadata: string): Promise<SessionKey> {
  const id = tx.ids();
  const { host, hostBoot, hostNamespace, pid, processStarted } = identity;
  const row = await tx.get<{ seq: number }>(sql`insert into daybook_session
      (id, host, host_boot, host_namespace, pid, process_started, started_at, last_heartbeat_at, metadata)
    values
      (${id}, ${host}, ${hostBoot}, ${hostNamespace}, ${pid}, ${processStarted}, ${tx.now}, ${tx.now}, ${metadata})
    returning seq`);
  tx.afterCommit(() => sessionStarted.state({ id, pid, host }));
  return { id, seq: row?.seq ?? 0 };
}

/** A remote worker: what it says of itself, whose jobs it runs, and the token that it showed; null where none is asked for. */
export type RemoteIdentity = {
  readonly tenant: string;
  readonly tokenId: string | null;
  readonly host: string;
  /** 0: it did not say. */
  readonly pid: number;
  readonly metadata: string;
};

export async function startRemoteSession(tx: Tx, remote: RemoteIdentity): Promise<SessionKey> {
  const id = tx.ids();
  const { tenant, tokenId, host, pid, metadata } = remote;
  const row = await tx.get<{ seq: number }>(sql`insert into daybook_session
      (id, kind, tenant_id, token_id, host, pid, started_at, last_heartbeat_at, metadata)
    values (${id}, 'remote', ${tenant}, ${tokenId}, ${host}, ${pid}, ${tx.now}, ${tx.now}, ${metadata})
    returning seq`);
  tx.afterCommit(() => sessionStarted.state({ id, pid, host }));
  return { id, seq: row?.seq ?? 0 };
}

/** What migration 10 adds to the table: the jobs room needs it together with its own. */
export const remoteColumns: readonly Sql[] = [
  sql`alter table daybook_session add column kind text not null default 'process' check (kind in ('process', 'remote'))`,
  // Whose jobs a remote worker runs, and the access token that it showed; null for a process, which works for all tenants.
  sql`alter table daybook_session add column tenant_id text`,
  sql`alter table daybook_session add column token_id text`,
];

/** For a copy of the book, which the processes of the original do not have open. */
export const endCopiedSessions: readonly Sql[] = [
  sql`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where status = 'running'`,
];

/** Changes no row once the session has ended. */
export function beatStatement(id: string, now: number): Sql {
  return sql`update daybook_session set beat = beat + 1, last_heartbeat_at = ${greatest}(started_at, ${now})
    where id = ${id} and status = 'running'`;
}

export async function stopSession(tx: Tx, id: string): Promise<void> {
  const stopped = await tx.run(sql`update daybook_session
    set status = 'success', stopped_at = ${greatest}(started_at, ${tx.now}), beat = beat + 1,
        last_heartbeat_at = ${greatest}(started_at, ${tx.now})
    where id = ${id} and status = 'running'`);
  if (stopped > 0) tx.afterCommit(() => sessionStopped.state({ id, status: "success" }));
}

export function failStatement(id: string, error: ErrorDescription, now: number): Sql {
  return sql`update daybook_session
    set status = 'error', stopped_at = ${greatest}(started_at, ${now}), error_type = ${error.type},
        error_message = ${error.message}, error_trace = ${error.trace}
    where id = ${id} and status = 'running'`;
}

/** Ends a session that fell silent; false when it has beaten or ended since. */
export async function endSilentSession(tx: Tx, seen: Pick<SessionRow, "id" | "beat">): Promise<boolean> {
  const ended = await tx.run(sql`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at
    where id = ${seen.id} and status = 'running' and beat = ${seen.beat}`);
  if (ended > 0) tx.afterCommit(() => sessionStopped.state({ id: seen.id, status: "unknown" }));
  return ended > 0;
}

export function runningSessions(): Sql {
  return sql`select * from daybook_session where status = 'running' order by seq`;
}

/** A further condition on `session`. A session belongs to no tenant, so a tenant sees those that run or ran something of its own;
 *  null sees all. Runs that just ended are in no rollup yet, so they are read themselves. */
export function onlyOwn(seenBy: string | null): Sql {
  if (seenBy === null) return sql``;
  return sql`and session.seq in (
    select run_rollup.at from daybook_run_series run_series join daybook_run_rollup run_rollup
        on run_rollup.series_seq = run_series.seq and run_rollup.span = 'session'
      where run_series.tenant_id = ${seenBy} and run_series.name = ${wholeName}
    union all select run.session_seq from daybook_run run
      where run.seq > (select folded_seq from daybook_run_fold) and run.tenant_id = ${seenBy}
    union all select line.session_seq from daybook_line line join daybook_job job on job.seq = line.seq
      where line.status = 'running' and job.tenant_id = ${seenBy}
    union all select app_instance.session_seq from daybook_app_instance app_instance
      where app_instance.tenant_id = ${seenBy}
    union all select seq from daybook_session where tenant_id = ${seenBy})`;
}

export type OnSilent = (tx: Tx, session: SessionRow) => Awaitable<void>;

type Owner = Pick<SessionRow, "kind" | "host" | "host_boot" | "host_namespace" | "pid" | "process_started">;

/** Whether the session's process is provably gone from this host. */
export function isGone(row: Owner, self: ProcessIdentity, { dialect }: Pick<Store, "dialect">): boolean {
  const { host, host_boot: hostBoot, host_namespace: hostNamespace, pid, process_started: processStarted } = row;
  if (row.kind === "remote") return false;
  return isProvablyGone({ host, hostBoot, hostNamespace, pid, processStarted }, self, {
    sameMachine: dialect === "sqlite",
  });
}

/** Running sessions whose process is gone. A process that was just killed ends in the book only when another session looks, so
 *  lists of what runs ask for these. */
export async function goneSessions(store: Pick<Store, "dialect" | "read">): Promise<SessionRow[]> {
  const self = thisProcess();
  return (await store.read<SessionRow>(runningSessions())).filter((row) => isGone(row, self, store));
}

/** One process. A tenant sees that it was there and how it ended; the host, pid, error, metadata and losses concern all tenants of
 *  the process, so they are null. */
export type Session = {
  readonly id: string;
  readonly kind: SessionKind;
  readonly host: string | null;
  readonly pid: number | null;
  readonly status: SessionStatus;
  readonly startedAt: number;
  readonly lastHeartbeatAt: number;
  readonly stoppedAt: number | null;
  readonly error: Readonly<ErrorDescription> | null;
  readonly metadata: Record<string, unknown> | null;
  /** What its live listeners lost: runs and log lines that were not recorded, and events they were too busy to hear. */
  readonly dropped: { readonly runs: number; readonly logs: number; readonly events: number } | null;
};

export type SessionsPage = Page<Session>;

export type Sessions = {
  /** The newest first. Give `next` of one page as `after` of the next one. On `book.tenant(id)`, only sessions that run or ran
   *  something of that tenant. */
  list(options?: { limit?: number; after?: string }): Promise<SessionsPage>;
  /** Looks for dead sessions now, without waiting for the next regular look; resolves to those it ended. */
  look(): Promise<Session[]>;
};

const selectSessions = sql`select session.seq as ".seq", id, kind, host, nullif(pid, 0) as pid, status, started_at as "startedAt",
    last_heartbeat_at as "lastHeartbeatAt", stopped_at as "stoppedAt", error_type as "error.type",
    error_message as "error.message", error_trace as "error.trace", metadata as "metadata json",
    dropped_runs as "dropped.runs", dropped_logs as "dropped.logs", dropped_events as "dropped.events"
  from daybook_session session`;

const unseen = { host: null, pid: null, error: null, metadata: null, dropped: null };

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export function openSessions(store: Store, attachment: Attachment | undefined, seenBy: string | null = null): Sessions {
  const shown = (session: Session): Session => (seenBy === null ? session : { ...session, ...unseen });
  return {
    async list(options = {}) {
      refuseUnknown(options, ["limit", "after"], "sessions.list");
      const { limit, after } = checkPage(options);
      const found = await store.readPage<Row>(sql`${selectSessions}
        where seq < ${after ?? Number.MAX_SAFE_INTEGER} ${onlyOwn(seenBy)} order by seq desc limit ${limit + 1}`);
      const gone = new Set((await goneSessions(store)).map(({ id }) => id));
      const { items, next } = await shapePage<Session>(found, limit);
      return { items: items.map((session) => shown(gone.has(session.id) ? ended(session) : session)), next };
    },
    async look() {
      const ids = ((await attachment?.watch.look()) ?? []).map(({ id }) => id);
      if (ids.length === 0) return [];
      const rows = await store.readHeavy<Row>(sql`${selectSessions}
        where id ${anyOf("text", ids)} ${onlyOwn(seenBy)} order by seq`);
      return shape<Session>(rows).map(shown);
    },
  };
}

// As the next look for dead sessions will leave it.
function ended(session: Session): Session {
  return { ...session, status: "unknown", stoppedAt: session.lastHeartbeatAt };
}
