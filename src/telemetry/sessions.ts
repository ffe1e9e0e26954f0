// What a user asks about sessions.
import { limits } from "../core/limits.ts";
import { invalid } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { notACursor } from "../core/page.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { Attachment } from "./attach.ts";
import { type SessionRow, type SessionStatus, isGone, listSessions, onlyOwn } from "./session.ts";
import { thisProcess, type ProcessIdentity } from "./process-identity.ts";

/** One process. What a tenant sees of it is that it was there and how it ended: its host, pid, error, metadata and losses
 *  are of all the tenants it works for, and null. */
export type Session = {
  readonly id: string;
  readonly host: string | null;
  readonly pid: number | null;
  readonly status: SessionStatus;
  readonly startedAt: number;
  readonly lastHeartbeatAt: number;
  readonly stoppedAt: number | null;
  readonly error: { readonly type: string; readonly message: string; readonly trace: string | null } | null;
  readonly metadata: Record<string, unknown> | null;
  /** What its live listeners lost: runs and log lines that were not recorded, events that found them too busy. */
  readonly dropped: { readonly runs: number; readonly logs: number; readonly events: number } | null;
};

export type SessionsPage = { readonly items: readonly Session[]; readonly next: string | null };

export type Sessions = {
  /** The newest first. Give `next` of one page as `after` of the following one. On `book.tenant(id)` only those that run
   *  something of that tenant, or have. */
  list(options?: { limit?: number; after?: string }): Promise<SessionsPage>;
  /** Looks at once for sessions that died, instead of at the next turn; resolves to those it ended. */
  look(): Promise<Session[]>;
};

/** `seenBy` null sees all of them, and all of each. */
export function openSessions(store: Store, attachment: Attachment | undefined, seenBy: string | null = null): Sessions {
  const isOver = (row: SessionRow, self: ProcessIdentity): boolean =>
    row.status === "running" && isGone(row, self, store);
  const shown = (row: SessionRow): Session => (seenBy === null ? toSession(row) : { ...toSession(row), ...unseen });
  return {
    async list(options = {}) {
      refuseUnknown(options, ["limit", "after"], "sessions.list");
      const { limit = limits.pageDefault, after } = options;
      if (!Number.isInteger(limit) || limit < 1 || limit > limits.pageMax) {
        throw invalid(`limit ${limit} is not a whole number from 1 to ${limits.pageMax}`);
      }
      const before = after === undefined ? undefined : Number(after);
      if (before !== undefined && !Number.isSafeInteger(before)) {
        throw notACursor(after);
      }
      const rows = await store.readHeavy<SessionRow>(listSessions(seenBy, { before, limit: limit + 1 }));
      const self = thisProcess();
      const items = rows.slice(0, limit).map((row) => (isOver(row, self) ? ended(row) : row));
      return { items: items.map(shown), next: rows.length > limit ? String(items.at(-1)?.seq) : null };
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

// As whoever looks for dead sessions will leave it.
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
