// A session is one running process attached to the book. Its row is written once when it starts, stamped while it
// lives, and ends exactly once:
//
//   running ──► success   it closed the book
//           ──► error     an uncaught exception ended it
//           ──► unknown   another session saw it fall silent; stopped_at is then its last heartbeat
import { defineFact } from "../core/fact.ts";
import { checkPage, cutPage, type Page } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Store, Tx } from "../storage/store.ts";
import { anyOf, greatest } from "../storage/word.ts";
import type { Attachment } from "./attach.ts";
import { isProvablyGone, thisProcess, type ProcessIdentity } from "./process-identity.ts";
import { wholeName } from "./rollup/series.ts";

export type SessionStatus = "running" | "success" | "error" | "unknown";

export type SessionRow = {
  seq: number;
  id: string;
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

export type SessionError = { type: string; message: string; trace: string | null };

export function failStatement(id: string, error: SessionError, now: number): Sql {
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
      where app_instance.tenant_id = ${seenBy})`;
}

export type OnSilent = (tx: Tx, session: SessionRow) => Awaitable<void>;

type Owner = Pick<SessionRow, "host" | "host_boot" | "host_namespace" | "pid" | "process_started">;

/** Whether the session's process is provably gone from this host. */
export function isGone(row: Owner, self: ProcessIdentity, { dialect }: Pick<Store, "dialect">): boolean {
  const { host, host_boot: hostBoot, host_namespace: hostNamespace, pid, process_started: processStarted } = row;
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
  readonly host: string | null;
  readonly pid: number | null;
  readonly status: SessionStatus;
  readonly startedAt: number;
  readonly lastHeartbeatAt: number;
  readonly stoppedAt: number | null;
  readonly error: Readonly<SessionError> | null;
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

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export function openSessions(store: Store, attachment: Attachment | undefined, seenBy: string | null = null): Sessions {
  const isOver = (row: SessionRow, self: ProcessIdentity): boolean =>
    row.status === "running" && isGone(row, self, store);
  const shown = (row: SessionRow): Session => (seenBy === null ? toSession(row) : { ...toSession(row), ...unseen });
  return {
    async list(options = {}) {
      refuseUnknown(options, ["limit", "after"], "sessions.list");
      const { limit, after } = checkPage(options);
      const rows = await store.readHeavy<SessionRow>(sql`select * from daybook_session session
        where seq < ${after ?? Number.MAX_SAFE_INTEGER} ${onlyOwn(seenBy)} order by seq desc limit ${limit + 1}`);
      const self = thisProcess();
      return cutPage(
        rows,
        limit,
        ({ seq }) => seq,
        (row) => shown(isOver(row, self) ? ended(row) : row),
      );
    },
    async look() {
      const found = (await attachment?.watch.look()) ?? [];
      if (found.length === 0 || seenBy === null) return found.map(toSession);
      const ids = found.map(({ id }) => id);
      const own = await store.readHeavy<SessionRow>(sql`select * from daybook_session session
        where id ${anyOf("text", ids)} ${onlyOwn(seenBy)} order by seq`);
      return own.map(shown);
    },
  };
}

const unseen = { host: null, pid: null, error: null, metadata: null, dropped: null };

// As the next look for dead sessions will leave it.
function ended(row: SessionRow): SessionRow {
  return { ...row, status: "unknown", stopped_at: row.last_heartbeat_at };
}

function toSession(row: SessionRow): Session {
  const { error_type: type, error_message: message, error_trace: trace } = row;
  return {
    id: row.id,
    host: row.host,
    pid: row.pid,
    status: row.status,
    startedAt: row.started_at,
    lastHeartbeatAt: row.last_heartbeat_at,
    stoppedAt: row.stopped_at,
    error: type === null ? null : { type, message: message ?? "", trace },
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    dropped: { runs: row.dropped_runs, logs: row.dropped_logs, events: row.dropped_events },
  };
}
