// A template: a name under which the work, its default params and its settings are kept. Jobs are made from what it says
// at that moment; what becomes of it later does not change them.
import { DaybookError } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { nearest } from "../../core/suggest.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { ReadRows } from "../definition.ts";
import type { Backoff } from "../../core/backoff.ts";

/** Where a setting is null, the definition of the job decides. */
export type TemplateRecord = {
  readonly id: string;
  readonly name: string;
  /** The name of the job that is made from it. */
  readonly job: string;
  /** What a job is given unless `enqueueFrom` says otherwise. */
  readonly params: unknown;
  readonly queue: string | null;
  readonly priority: number | null;
  readonly attempts: number | null;
  readonly backoff: Backoff | null;
  readonly timeoutMs: number | null;
  readonly losses: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** While this is set, no jobs are made from it. */
  readonly archivedAt: number | null;
  /** Counts its changes, from 1. */
  readonly revision: number;
};

/** As it is read: params and backoff are JSON text. */
export type TemplateRow = Omit<TemplateRecord, "params" | "backoff"> & {
  readonly seq: number;
  readonly params: string;
  readonly backoff: string | null;
};

export function toTemplate({ seq: _seq, ...row }: TemplateRow): TemplateRecord {
  const backoff = row.backoff === null ? null : (JSON.parse(row.backoff) as Backoff);
  return { ...row, params: JSON.parse(row.params) as unknown, backoff };
}

export const selectTemplates = sql`select seq, id, name, job_name as job, params, queue, priority, attempts, backoff,
    timeout_ms as "timeoutMs", losses, created_at as "createdAt", updated_at as "updatedAt", archived_at as "archivedAt", revision
  from daybook_job_template job_template`;

// So many names are looked through for the one that was meant; a slip of the hand is no reason to read them all.
const namesReadMax = 1000;

/** The template of that name, or an error that says which name was probably meant. `lock` is what PostgreSQL needs to
 *  keep the row as it was read. */
export async function findTemplate(read: ReadRows, tenant: string, name: string, lock?: Sql): Promise<TemplateRow> {
  const [row] = await read<TemplateRow>(
    sql`${selectTemplates} where tenant_id = ${tenant} and name = ${name} ${lock ?? sql``}`,
  );
  if (row !== undefined) return row;
  const others = await read<{ name: string }>(
    sql`select name from daybook_job_template job_template where tenant_id = ${tenant} order by name limit ${namesReadMax}`,
  );
  const meant = nearest(
    name,
    others.map((each) => each.name),
  );
  const hint = meant === undefined ? "" : `: did you mean ${quote(meant)}?`;
  throw new DaybookError("not_found", `there is no template ${quote(name)}${hint}`, {
    details: { template: name, ...(meant === undefined ? {} : { meant }) },
  });
}
