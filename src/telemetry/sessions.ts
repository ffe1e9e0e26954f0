// What a user asks about sessions.
import { checkPage, cutPage, type Page } from "../core/page.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { Attachment } from "./attach.ts";
import { thisProcess, type ProcessIdentity } from "./process-identity.ts";
import { isGone, onlyOwn, type SessionError, type SessionRow, type SessionStatus } from "./session.ts";

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
