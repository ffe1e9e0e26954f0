// The tables of access: who may use the book, what they changed, what they were answered, and what takes long.
import type { Migration } from "../storage/migrate.ts";
import { sql } from "../storage/sql.ts";
import { clustered, integer, sequence, strict } from "../storage/word.ts";

const roles = sql`check (role in ('read', 'operate', 'admin', 'worker'))`;

export const accessMigrations: readonly Migration[] = [
  {
    number: 9,
    name: "token, login, audit, reply, operation",
    up: [
      // Of a secret there is only the hash. A row stays when its token is revoked or has expired, because the audit names it.
      sql`create table daybook_token (
        seq ${sequence},
        id text not null unique,
        hash text not null,
        name text not null,
        -- Null: it is of the whole book.
        tenant_id text,
        role text not null ${roles},
        -- What a worker may take: lists as JSON; null means all.
        queues text,
        names text,
        created_at ${integer} not null,
        expires_at ${integer},
        last_used_at ${integer},
        revoked_at ${integer},
        check (role = 'worker' or (queues is null and names is null)),
        check (expires_at > created_at),
        check (revoked_at >= created_at)
      )${strict}`,
      // A link is gone once it was used. A login that a token opened is gone with the token.
      sql`create table daybook_login (
        hash text primary key,
        kind text not null check (kind in ('link', 'login')),
        token_seq ${integer} references daybook_token (seq) on delete cascade,
        tenant_id text,
        role text not null ${roles},
        created_at ${integer} not null,
        expires_at ${integer} not null,
        check (kind = 'login' or token_seq is null),
        check (expires_at > created_at)
      )${clustered}`,
      sql`create index logins_of_token on daybook_login (token_seq) where token_seq is not null`,
      sql`create table daybook_audit (
        seq ${sequence},
        id text not null,
        -- Null: what was done is about all tenants.
        tenant_id text,
        noted_at ${integer} not null,
        token_id text,
        caller text not null,
        role text not null ${roles},
        verb text not null,
        subject text,
        input text,
        from_address text not null,
        request_id text not null,
        -- How it ended; null while nobody knows, and for ever when the process ended first.
        ended_at ${integer},
        status ${integer},
        code text,
        check ((ended_at is null) = (status is null)),
        check (code is null or status is not null)
      )${strict}`,
      sql`create index audit_of_tenant on daybook_audit (tenant_id, seq)`,
      // A request with an idempotency key: under way until it has an answer, which is then kept for a day.
      sql`create table daybook_reply (
        tenant_id text not null,
        token_id text not null,
        key text not null,
        -- Of the request that has the key: another one gets it when the first was given up.
        id text not null,
        route text not null,
        body_hash text not null,
        session_seq ${integer},
        begun_at ${integer} not null,
        finished_at ${integer},
        status ${integer},
        headers text,
        body text,
        primary key (tenant_id, token_id, key),
        check ((finished_at is null) = (status is null)),
        check ((finished_at is null) = (headers is null)),
        check ((finished_at is null) = (body is null))
      )${strict}`,
      sql`create index replies_to_leave on daybook_reply (begun_at)`,
      sql`create table daybook_operation (
        seq ${sequence},
        id text not null,
        -- Null: it is about all tenants.
        tenant_id text,
        verb text not null,
        token_id text,
        caller text,
        input text,
        session_seq ${integer},
        status text not null default 'running' check (status in ('running', 'completed', 'failed', 'cancelled', 'lost')),
        done ${integer} not null default 0 check (done >= 0),
        total ${integer} check (total >= 0),
        started_at ${integer} not null,
        updated_at ${integer} not null,
        cancel_requested_at ${integer},
        finished_at ${integer},
        result text,
        -- Why what it answered was not kept.
        result_refused text,
        error_code text,
        error_message text,
        check ((status = 'running') = (finished_at is null)),
        -- What a cancelled one has done until then is kept too.
        check (result is null or status in ('completed', 'cancelled')),
        check ((status = 'failed') = (error_code is not null)),
        check ((error_code is null) = (error_message is null))
      )${strict}`,
      sql`create unique index operations_by_id on daybook_operation (id)`,
      sql`create index operations_of_tenant on daybook_operation (tenant_id, seq)`,
      sql`create index operations_open on daybook_operation (session_seq) where status = 'running'`,
    ],
  },
];
