// The state of an instance, as everybody who looks at the book sees it.
import type { ErrorDescription } from "../core/error.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import type { InstanceIdentity } from "./identity.ts";

export type InstanceStatus = "starting" | "running" | "failed" | "stopped";

export type InstanceState = {
  readonly status: InstanceStatus;
  readonly error: ErrorDescription | null;
  readonly sessionSeq: number;
};

export async function writeInstance(
  tx: Tx,
  { tenant, app, instance }: InstanceIdentity,
  { status, error, sessionSeq }: InstanceState,
): Promise<void> {
  const { type = null, message = null, trace = null } = error ?? {};
  await tx.run(sql`insert into daybook_app_instance (tenant_id, app_key, instance_index, session_seq, status, error_type,
      error_message, error_trace, changed_at)
    values (${tenant}, ${app}, ${instance}, ${sessionSeq}, ${status}, ${type}, ${message}, ${trace}, ${tx.now})
    on conflict (tenant_id, app_key, instance_index) do update set session_seq = excluded.session_seq,
      status = excluded.status, error_type = excluded.error_type, error_message = excluded.error_message,
      error_trace = excluded.error_trace, changed_at = excluded.changed_at`);
}

/** Says that it has stopped, unless another process has taken it over since. */
export async function writeStopped(
  tx: Tx,
  { tenant, app, instance }: InstanceIdentity,
  sessionSeq: number,
): Promise<void> {
  await tx.run(sql`update daybook_app_instance set status = 'stopped', changed_at = ${tx.now}
    where tenant_id = ${tenant} and app_key = ${app} and instance_index = ${instance} and session_seq = ${sessionSeq}
      and status in ('starting', 'running')`);
}

/** Others took a session for dead that lives on under a new one: what it runs is the new one's. */
export async function moveInstances(tx: Tx, lost: number, replacement: number): Promise<void> {
  await tx.run(sql`update daybook_app_instance set session_seq = ${replacement}
    where session_seq = ${lost} and status in ('starting', 'running')`);
}
