import { sql, type Sql } from "../../storage/sql.ts";
import { integer, sequence, strict } from "../../storage/word.ts";

export const leaseTable: readonly Sql[] = [
  // The right to end one run, which a remote worker proves by a secret. It is over when the run is, or at `expires_at`; a row that is
  // over stays for a day, to tell a worker that comes late what happened.
  sql`create table daybook_lease (
    seq ${sequence},
    tenant_id text not null,
    token_hash text not null,
    run_id text not null,
    job_seq ${integer} not null,
    session_seq ${integer} not null references daybook_session (seq),
    lasts_ms ${integer} not null check (lasts_ms > 0),
    renewed_at ${integer} not null,
    expires_at ${integer} not null,
    -- How many lines the worker has written into the log of its run.
    lines ${integer} not null default 0,
    closed_at ${integer},
    closed_as text check (closed_as in ('settled', 'failed', 'returned', 'lost', 'ended')),
    unique (tenant_id, token_hash),
    unique (tenant_id, run_id),
    check ((closed_at is null) = (closed_as is null))
  )${strict}`,
  sql`create index leases_to_expire on daybook_lease (expires_at, seq) where closed_at is null`,
  sql`create index leases_of_session on daybook_lease (session_seq) where closed_at is null`,
  sql`create index leases_to_remove on daybook_lease (closed_at) where closed_at is not null`,
];
