// The tables of records. Live rows stand apart from closed versions, so that reading the present is as fast as a plain table.
import type { Migration } from "../storage/migrate.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { asText, clustered, followingColumns, integer, json, plainText, sequence, strict } from "../storage/word.ts";

// The same columns in both tables.
const what = sql`
  tenant_id text not null,
  type_seq ${integer} not null references daybook_record_type (seq),
  key ${plainText} not null,
  from_type_seq ${integer} references daybook_record_type (seq),
  from_key ${plainText},
  to_type_seq ${integer} references daybook_record_type (seq),
  to_key ${plainText},
  instance_key ${plainText},
  revision ${integer} not null check (revision >= 1),
  schema_version ${integer} not null,
  from_commit ${integer} not null`;

// The last column of both tables, because SQLite reads a column behind a large document through all of the document's pages.
const document = sql`body ${json} not null`;

const endsTogether = sql`
  check (from_key is null and to_key is null and instance_key is null and from_type_seq is null and to_type_seq is null
    or from_key is not null and to_key is not null and instance_key is not null and from_type_seq is not null and to_type_seq is not null)`;

export const recordMigrations: readonly Migration[] = [
  {
    number: 6,
    name: "record_type, record_commit, record, record_version, record_change",
    up: [
      sql`create table daybook_record_type (
        seq ${sequence},
        tenant_id text not null,
        kind text not null check (kind in ('entity', 'relation')),
        name text not null,
        from_type_seq ${integer} references daybook_record_type (seq),
        to_type_seq ${integer} references daybook_record_type (seq),
        created_at ${integer} not null,
        unique (tenant_id, name),
        check ((kind = 'relation') = (from_type_seq is not null)),
        check ((kind = 'relation') = (to_type_seq is not null))
      )${strict}`,
      sql`create table daybook_record_schema (
        seq ${sequence},
        tenant_id text not null,
        type_seq ${integer} not null references daybook_record_type (seq),
        version ${integer} not null check (version >= 1),
        schema text not null,
        hash text not null,
        reason text not null,
        created_at ${integer} not null,
        unique (tenant_id, type_seq, version),
        unique (tenant_id, type_seq, hash),
        check ((version = 1) = (reason = 'initial'))
      )${strict}`,
      // One row per tenant. A committing transaction locks it until its end, which makes commits serial and their ids dense.
      sql`create table daybook_record_head (
        tenant_id text not null primary key,
        commit_id ${integer} not null check (commit_id >= 0),
        committed_at ${integer} not null,
        clock_from ${integer} not null
      )${clustered}`,
      sql`create table daybook_record_commit (
        tenant_id text not null,
        id ${integer} not null check (id >= 1),
        committed_at ${integer} not null,
        -- The first commit since the clock was last set back: from it on, times do not go back.
        clock_from ${integer} not null check (clock_from <= id),
        changes ${integer} not null check (changes >= 1),
        actor text,
        reason text,
        metadata text not null,
        run_id text,
        root_run_id text,
        primary key (tenant_id, id)
      )${clustered}`,
      sql`create index commits_by_time on daybook_record_commit (tenant_id, clock_from, committed_at, id)`,
      sql`create index commits_by_actor on daybook_record_commit (tenant_id, actor, id) where actor is not null`,
      // A row for each type that a commit changed. An index on the changes would cost as many rows as there are changes.
      sql`create table daybook_record_commit_type (
        tenant_id text not null,
        type_seq ${integer} not null references daybook_record_type (seq),
        commit_id ${integer} not null,
        primary key (tenant_id, type_seq, commit_id),
        foreign key (tenant_id, commit_id) references daybook_record_commit (tenant_id, id)
      )${clustered}`,
      // By type first, because a type has one tenant and SQLite counts fastest where one number bounds the scan.
      sql`create table daybook_record (seq ${sequence}, ${what}, ${document},
        unique (type_seq, tenant_id, key), ${endsTogether})${strict}`,
      sql`create index relations_from on daybook_record (tenant_id, from_type_seq, from_key, type_seq) where from_key is not null`,
      sql`create index relations_to on daybook_record (tenant_id, to_type_seq, to_key, type_seq) where to_key is not null`,
      sql`create table daybook_record_version (seq ${sequence}, ${what},
        to_commit ${integer} not null,
        ended text not null check (ended in ('replaced', 'deleted')),
        ${document},
        unique (tenant_id, type_seq, key, from_commit),
        check (to_commit > from_commit), ${endsTogether})${strict}`,
      sql`${followingColumns("daybook_record", "tenant_id, type_seq, from_type_seq, to_type_seq")}`,
      sql`${followingColumns("daybook_record_version", "tenant_id, type_seq, from_type_seq, to_type_seq")}`,
      // A scan of the past reads only the versions that were closed since.
      sql`create index versions_closed on daybook_record_version (tenant_id, type_seq, to_commit)`,
      sql`create index versions_from on daybook_record_version (tenant_id, from_type_seq, from_key, to_commit) where from_key is not null`,
      sql`create index versions_to on daybook_record_version (tenant_id, to_type_seq, to_key, to_commit) where to_key is not null`,
      sql`create table daybook_record_change (
        tenant_id text not null,
        commit_id ${integer} not null,
        position ${integer} not null,
        type_seq ${integer} not null references daybook_record_type (seq),
        key ${plainText} not null,
        kind text not null check (kind in ('created', 'updated', 'deleted')),
        revision ${integer} not null,
        primary key (tenant_id, commit_id, position),
        foreign key (tenant_id, commit_id) references daybook_record_commit (tenant_id, id)
      )${clustered}`,
    ],
  },
  {
    number: 13,
    name: "what a run has made: commits",
    up: [sql`create index commits_caused on daybook_record_commit (tenant_id, run_id) where run_id is not null`],
  },
];

const versions = (which: Sql): Sql => sql`(
  select tenant_id, type_seq, key, from_key, to_key, instance_key, body, schema_version, from_commit,
    null as to_commit from daybook_record where ${which}
  union all select tenant_id, type_seq, key, from_key, to_key, instance_key, body, schema_version, from_commit,
    to_commit from daybook_record_version where ${which})`;

/** The row of a version moves when it is closed; its type, key and commit stay. */
const id = rawSql("version.type_seq || '/' || version.key || '@' || version.from_commit");

/** Views under the names of other designs, made on request; docs/origins.md says what differs. */
export const recordViews: readonly View[] = [
  {
    name: "commits",
    // PostgreSQL allows writes to a view over one table, but not to a view with a common table expression.
    as: sql`with one as (select * from daybook_record_commit) select
    id, tenant_id, committed_at as created_at, metadata as metadata_json, actor, reason from one`,
  },
  {
    name: "entity_history",
    as: sql`select
    ${id} as id, version.tenant_id, record_type.name as entity_type, version.key as entity_key,
    version.body${asText} as fields_json, version.from_commit as commit_id, version.schema_version as schema_version_id,
    version.to_commit as ended_commit_id
  from ${versions(rawSql("from_key is null"))} as version join daybook_record_type record_type on record_type.seq = version.type_seq`,
  },
  {
    name: "relation_history",
    as: sql`select
    ${id} as id, version.tenant_id, record_type.name as relation_type, version.from_key as left_key,
    version.to_key as right_key, version.instance_key, version.body${asText} as fields_json,
    version.from_commit as commit_id, version.schema_version as schema_version_id, version.to_commit as ended_commit_id
  from ${versions(rawSql("from_key is not null"))} as version join daybook_record_type record_type on record_type.seq = version.type_seq`,
  },
  {
    name: "schema_versions",
    as: sql`select
    record_schema.seq as id, record_schema.tenant_id, record_type.kind as type_kind, record_type.name as type_name,
    record_schema.version as schema_version_id, record_schema.schema as schema_json, record_schema.hash as schema_hash,
    record_schema.created_at, cast(null as text) as runtime_id, record_schema.reason
  from daybook_record_schema record_schema join daybook_record_type record_type on record_type.seq = record_schema.type_seq`,
  },
  {
    name: "schema_registry",
    as: sql`select tenant_id, type_kind, type_name, schema_json from schema_versions as newest
    where schema_version_id = (select max(version) from daybook_record_schema record_schema join daybook_record_type record_type on record_type.seq = record_schema.type_seq
      where record_type.tenant_id = newest.tenant_id and record_type.name = newest.type_name)`,
  },
];
