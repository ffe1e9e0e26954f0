// The names under which another design keeps the same things; docs/origins.md says what differs. They are made on request.
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import type { View } from "../storage/view.ts";
import { asText } from "../storage/word.ts";

const versions = (which: Sql): Sql => sql`(
  select tenant_id, type_seq, key, from_key, to_key, instance_key, body, schema_version, from_commit,
    null as to_commit from daybook_record where ${which}
  union all select tenant_id, type_seq, key, from_key, to_key, instance_key, body, schema_version, from_commit,
    to_commit from daybook_record_version where ${which})`;

/** The row of a version moves when it is closed; its type, key and commit stay. */
const id = rawSql("version.type_seq || '/' || version.key || '@' || version.from_commit");

export const recordViews: readonly View[] = [
  {
    name: "commits",
    // PostgreSQL lets a view over one table be written; one with a common table expression it does not.
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
