// Writes job rows. This is the hottest insert of the book, so it is one statement whatever the number of rows.
import { rawSql, sql, type Value } from "../storage/sql.ts";
import { eachRow, rowsInto } from "../storage/word.ts";
import type { Tx } from "../storage/store.ts";
import type { JobRow } from "./job.ts";

/** What a new row says for itself; its place and everything about its run come later. */
export type NewJob = Pick<
  JobRow,
  | ("tenant_id" | "id" | "lane_seq" | "name" | "status" | "waits_for" | "waits_key" | "priority" | "created_at")
  | ("available_at" | "params" | "origin" | "attempt" | "attempts" | "losses" | "losses_max" | "backoff")
  | ("timeout_ms" | "retry_of" | "alone" | "key" | "key_held" | "key_scope" | "key_until" | "idempotency_key")
  | ("limits" | "limit_key" | "tags")
  | ("cause_run_id" | "root_run_id")
> &
  Partial<
    Pick<JobRow, "template_id" | "group_seq" | "group_slot" | "chain_seq" | "awaited" | "kind" | "kind_seq" | "about"> &
      Pick<JobRow, "app" | "instance" | "registration" | "traceparent">
  >;

const columns = {
  tenant_id: "text",
  id: "text",
  lane_seq: "integer",
  name: "text",
  status: "text",
  waits_for: "text",
  waits_key: "text",
  priority: "integer",
  created_at: "integer",
  available_at: "integer",
  params: "text",
  origin: "text",
  attempt: "integer",
  attempts: "integer",
  losses: "integer",
  losses_max: "integer",
  backoff: "text",
  timeout_ms: "integer",
  retry_of: "integer",
  alone: "integer",
  key: "text",
  key_held: "text",
  key_scope: "text",
  key_until: "integer",
  idempotency_key: "text",
  limits: "text",
  limit_key: "text",
  tags: "text",
  cause_run_id: "text",
  root_run_id: "text",
} as const satisfies Partial<Record<keyof NewJob, "text" | "integer">>;

// Most jobs belong to nothing, and do not pay for saying so.
const allColumns = {
  ...columns,
  template_id: "text",
  group_seq: "integer",
  group_slot: "integer",
  chain_seq: "integer",
  awaited: "integer",
  kind: "text",
  kind_seq: "integer",
  about: "text",
  app: "text",
  instance: "integer",
  registration: "text",
  traceparent: "text",
} as const satisfies Record<keyof NewJob, "text" | "integer">;

/** Inserts the rows that no unique key forbids, in order, and says how many that were. */
export function insertJobs(tx: Tx, rows: readonly NewJob[]): PromiseLike<number> | number {
  const into = rows.some(belongs) ? (rows.every(isOnlyOfKind) ? ofKind : everything) : usual;
  const given = into === everything ? rows.map((row) => ({ ...belongsToNothing, ...row })) : rows;
  const values = given as readonly (NewJob & Record<string, Value>)[];
  if (tx.dialect === "sqlite") return tx.run(rowsInto(into.text, into.names, values));
  return tx.run(sql`${into.head} ${eachRow(into.columns, values)} on conflict do nothing`);
}

function belongs(row: NewJob): boolean {
  const { template_id, group_seq, chain_seq, kind, about, app, traceparent } = row;
  return (template_id ?? group_seq ?? chain_seq ?? kind ?? about ?? app ?? traceparent ?? null) !== null;
}

// Deliveries are as many as jobs, and are nothing but that.
function isOnlyOfKind(row: NewJob): boolean {
  const { template_id, group_seq, chain_seq, about, awaited, kind, kind_seq, app, registration, traceparent } = row;
  const owned = template_id ?? group_seq ?? chain_seq ?? about ?? app ?? registration ?? traceparent ?? null;
  if (owned !== null || (awaited ?? 0) !== 0) return false;
  return kind !== undefined && kind_seq !== undefined;
}

const belongsToNothing = {
  ...{ template_id: null, group_seq: null, group_slot: null, chain_seq: null, awaited: 0 },
  ...{ kind: null, kind_seq: null, about: null, app: null, instance: null, registration: null, traceparent: null },
};

// The place in line is the row's sequence × 100. PostgreSQL has that as the column's default; SQLite cannot refer to a
// new row's own number, but its only writer can know it.
const nextPosition = "(select coalesce(max(seq), 0) + 1 from job) * 100";

function insertInto(these: Readonly<Record<string, "text" | "integer">>) {
  const names = Object.keys(these);
  const marks = names.map(() => "?").join(", ");
  const text = `insert into job (position, ${names.join(", ")}) values (${nextPosition}, ${marks}) on conflict do nothing`;
  return { columns: these, names, head: rawSql(`insert into job (${names.join(", ")})`), text: [text] as const };
}

const usual = insertInto(columns);
const ofKind = insertInto({ ...columns, kind: "text", kind_seq: "integer" } as const);
const everything = insertInto(allColumns);
