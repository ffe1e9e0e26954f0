// The audit: who changed what, when and from where, and how it ended. A note is on disk before its caller is answered; how it ended
// follows within a second, and stays open when the process ended first.
import type { Timer } from "../core/clock.ts";
import { warnOf } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkName } from "../core/name.ts";
import { checkPage, type Page, type PageOptions } from "../core/page.ts";
import { storableText } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { timeMs, type TimeInput } from "../core/time.ts";
import { durationMs } from "../core/duration.ts";
import { shapePage } from "../storage/shape.ts";
import { sql } from "../storage/sql.ts";
import type { Row, Store, Tx } from "../storage/store.ts";
import { andEqual, anyOf, insertInto, rowSet, type Nullable, type RowOf } from "../storage/word.ts";
import { together } from "../storage/unit.ts";
import type { Caller } from "./caller.ts";
import { scrub } from "./scrub.ts";
import type { Role } from "./token.ts";

export type AuditNote = {
  readonly caller: Caller;
  /** Null: it is about all tenants. */
  readonly tenant: string | null;
  readonly verb: string;
  /** The id or name of what it is done to. */
  readonly subject: string | null;
  readonly input: unknown;
  readonly from: string;
  readonly requestId: string;
};

export type AuditEntry = {
  readonly id: string;
  readonly at: number;
  readonly tenant: string | null;
  readonly by: { readonly name: string; readonly tokenId: string | null; readonly role: Role };
  readonly verb: string;
  readonly subject: string | null;
  /** Without its secrets, and cut. */
  readonly input: unknown;
  readonly from: string;
  readonly requestId: string;
  /** Null while it is under way, and for ever when the process ended first. */
  readonly outcome: { readonly status: number; readonly code: string | null; readonly endedAt: number } | null;
};

export type AuditFilter = PageOptions & {
  /** The public id of a token. */
  readonly token?: string;
  readonly verb?: string;
  readonly subject?: string;
  /** From then on: a time, or how long ago, such as "24h". */
  readonly since?: TimeInput;
};

export type Audit = {
  /** Changes through a server, the newest first. A tenant's handle lists those of the tenant. */
  list(filter?: AuditFilter): Promise<Page<AuditEntry>>;
};

export type Auditor = {
  /** Resolves to what `outcome` is told, once the note is on disk. A change of the same moment is in the same group of units. */
  note(entry: AuditNote): Promise<string>;
  outcome(noteId: string, outcome: { readonly status: number; readonly code: string | null }): void;
  /** Resolves once what is known is written. */
  flush(): Promise<void>;
  list(tenant: string | null, filter?: AuditFilter): Promise<Page<AuditEntry>>;
  close(): Promise<void>;
};

const columns = {
  seq: "integer",
  id: "text",
  tenant_id: "text",
  noted_at: "integer",
  token_id: "text",
  caller: "text",
  role: "text",
  verb: "text",
  subject: "text",
  input: "text",
  from_address: "text",
  request_id: "text",
} as const;

type Noted = Omit<RowOf<typeof columns>, "seq" | "noted_at" | "tenant_id" | "token_id" | "subject" | "input"> &
  Nullable<Pick<RowOf<typeof columns>, "tenant_id" | "token_id" | "subject" | "input">>;

const unitNotesMax = 500;

type Outcome = { seq: number; id: string; status: number; code: string | null; ended_at: number };

export function openAudit(store: Store): Auditor {
  const write = together(
    (tx, all: readonly { readonly tenant: string; readonly noted: Noted }[]) =>
      writeNotes(
        tx,
        all.map(({ noted }) => noted),
      ),
    unitNotesMax,
  );
  let outcomes = new Map<string, Outcome>();
  let timer: Timer | undefined;
  let writing: Promise<void> = Promise.resolve();
  let warned = false;

  function flush(): Promise<void> {
    timer?.cancel();
    timer = undefined;
    return (writing = writing.then(writeNext));
  }

  async function writeNext(): Promise<void> {
    const batch = outcomes;
    if (batch.size === 0) return;
    outcomes = new Map();
    try {
      await store.write((tx) => writeOutcomes(tx, [...batch.values()]), { by: "shared" });
    } catch (error) {
      // Telemetry never stops work. What is tried again is bounded, and the newest is kept.
      outcomes = new Map([...batch, ...outcomes].slice(-limits.auditOutcomesMax));
      if (!warned) warnOf("DAYBOOK_AUDIT", "how changes ended could not be written, and is tried again", error);
      warned = true;
    }
  }

  return {
    async note({ caller, tenant, verb, subject, input, from, requestId }) {
      // Before anything is awaited, so that the note is in line with what its caller begins next.
      const noted = {
        id: store.ids(),
        tenant_id: tenant,
        token_id: caller.tokenId,
        caller: caller.name,
        role: caller.role,
        verb: storableText(verb, limits.nameBytesMax),
        subject: subject === null ? null : storableText(subject, limits.auditTextBytesMax),
        input: scrub(input),
        from_address: storableText(from, limits.nameBytesMax),
        request_id: storableText(requestId, limits.nameBytesMax),
      };
      return write(store, { tenant: tenant ?? "", noted });
    },
    outcome(noteId, { status, code }) {
      const [seq, id] = noteId.split(":");
      // The first is what the caller was told.
      if (outcomes.has(noteId)) return;
      if (outcomes.size >= limits.auditOutcomesMax)
        for (const first of outcomes.keys()) if (outcomes.delete(first)) break;
      outcomes.set(noteId, { seq: Number(seq), id: id ?? "", status, code, ended_at: store.time.now() });
      timer ??= store.waitClock.after(limits.auditOutcomeMs, () => void flush());
    },
    flush,
    async list(tenant, filter = {}) {
      refuseUnknown(filter, ["limit", "after", "token", "verb", "subject", "since"], "audit.list");
      const { limit, after } = checkPage(filter);
      const { token, verb, subject, since } = filter;
      for (const [name, value] of Object.entries({ token, verb, subject }))
        if (value !== undefined) checkName(value, name);
      const from = since === undefined ? 0 : sinceMs(since, store.time.now());
      await flush();
      const own = tenant === null ? sql`` : sql`and tenant_id = ${tenant}`;
      const found = await store.readPage<Row>(sql`${shown} where seq < ${after ?? Number.MAX_SAFE_INTEGER}
        and noted_at >= ${from} ${own} ${andEqual({ token_id: token, verb, subject })} order by seq desc limit ${limit + 1}`);
      return shapePage<AuditEntry>(found, limit);
    },
    async close() {
      await flush();
      timer?.cancel();
    },
  };
}

const shown = sql`select seq as ".seq", id, noted_at as "at", tenant_id as tenant, caller as "by.name", token_id as "by.tokenId",
  role as "by.role", verb, subject, input as "input json", from_address as "from", request_id as "requestId",
  status as "outcome.status", code as "outcome.code", ended_at as "outcome.endedAt" from daybook_audit audit`;

function sinceMs(since: TimeInput, now: number): number {
  return typeof since === "string" && /^\d+[a-z]/.test(since)
    ? now - durationMs(since, "since")
    : timeMs(since, "since");
}

async function writeNotes(tx: Tx, notes: readonly Noted[]): Promise<string[]> {
  const rows = notes.map((note) => ({ ...note, noted_at: tx.now }));
  if (tx.dialect === "sqlite") {
    // SQLite's only writer knows the next numbers.
    const last = await tx.get<{ seq: number | null }>(sql`select max(seq) as seq from daybook_audit`);
    const numbered = rows.map((row, index) => ({ ...row, seq: (last?.seq ?? 0) + index + 1 }));
    await tx.run(insertInto("daybook_audit", columns, numbered));
    return numbered.map(handleOf);
  }
  const { seq: _numbered, ...given } = columns;
  const made = await tx.all<{ seq: number; id: string }>(
    sql`${insertInto("daybook_audit", given, rows)} returning seq, id`,
  );
  const byId = new Map(made.map((row) => [row.id, handleOf(row)]));
  return rows.map(({ id }) => byId.get(id) ?? "");
}

function handleOf({ seq, id }: { readonly seq: number; readonly id: string }): string {
  return `${seq}:${id}`;
}

const outcomeColumns = { seq: "integer", id: "text", status: "integer", code: "text", ended_at: "integer" } as const;

async function writeOutcomes(tx: Tx, outcomes: readonly Outcome[]): Promise<void> {
  await tx.run(sql`update daybook_audit as audit set status = v.status, code = v.code, ended_at = v.ended_at
    from ${rowSet("v", outcomeColumns, outcomes)}
    where audit.seq = v.seq and audit.id = v.id and audit.status is null`);
}

/** Removes what was noted before `by`, the oldest first, and says how many. A slice that is not full was the last. */
export async function removeNotes(tx: Tx, by: number, limit: number): Promise<number> {
  const first = await tx.all<{ seq: number; noted_at: number }>(
    sql`select seq, noted_at from daybook_audit audit order by seq limit ${limit}`,
  );
  const seqs = first.filter((row) => row.noted_at < by).map((row) => row.seq);
  return seqs.length === 0 ? 0 : tx.run(sql`delete from daybook_audit where seq ${anyOf("integer", seqs)}`);
}
