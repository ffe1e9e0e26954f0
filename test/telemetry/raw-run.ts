// Rows of `run` as tests of rollups, lists and retention need them, without the work that would leave them behind.
import type { Store } from "../../src/storage/store.ts";
import { sql } from "../../src/storage/sql.ts";
import { eachRow } from "../../src/storage/word.ts";
import type { RunStatus } from "../../src/telemetry/run.ts";

export type RawRun = {
  readonly name: string;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly tenant?: string;
  readonly id?: string;
  readonly kind?: string;
  readonly status?: RunStatus;
  readonly error?: { readonly type: string; readonly message: string };
  readonly app?: string;
  readonly instance?: number;
  readonly registration?: string;
  readonly sessionSeq?: number;
};

const columns = {
  ...({
    tenant_id: "text",
    id: "text",
    kind: "text",
    name: "text",
    attempt: "integer",
    started_at: "integer",
  } as const),
  ...({ ended_at: "integer", duration_ms: "real", status: "text", error_type: "text", error_message: "text" } as const),
  ...({ app: "text", instance: "integer", registration: "text", session_seq: "integer" } as const),
};

/** Live runs: they have no job. Returns their ids. */
export async function insertRuns(store: Store, runs: readonly RawRun[]): Promise<string[]> {
  const rows = runs.map((run) => ({
    tenant_id: run.tenant ?? "default",
    id: run.id ?? store.ids(),
    kind: run.kind ?? "listener",
    name: run.name,
    attempt: 1,
    started_at: run.startedAt,
    ended_at: run.startedAt + Math.round(run.durationMs),
    duration_ms: run.durationMs,
    status: run.status ?? "success",
    error_type: run.error?.type ?? null,
    error_message: run.error?.message ?? null,
    app: run.app ?? null,
    instance: run.instance ?? null,
    registration: run.registration ?? null,
    session_seq: run.sessionSeq ?? null,
  }));
  await store.write((tx) =>
    tx.run(sql`insert into daybook_run (tenant_id, id, kind, name, attempt, started_at, ended_at, duration_ms, status, error_type,
      error_message, app, instance, registration, session_seq) ${eachRow(columns, rows)}`),
  );
  return rows.map(({ id }) => id);
}
