// What must hold of records; doctor checks it. The numbers are those of docs/promises.md.
import type { Check } from "../storage/checks.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";

const advice =
  "report it: a commit and its versions are written in one transaction. Restore a backup if rows were changed by hand";

const versions = sql`(select tenant_id, type_seq, key, from_commit, schema_version from daybook_record
  union all select tenant_id, type_seq, key, from_commit, schema_version from daybook_record_version)`;

/** For people: the tenant, the type and the key. */
const named = rawSql("versions.tenant_id || ' ' || versions.type_seq || ' ' || versions.key");

const change = rawSql(
  "change.tenant_id || ' commit ' || change.commit_id || ': ' || change.type_seq || ' ' || change.key",
);

const madeBy = (version: string): Sql =>
  rawSql(`${version}.tenant_id = change.tenant_id and ${version}.type_seq = change.type_seq and ${version}.key = change.key
    and ${version}.from_commit = change.commit_id and ${version}.revision = change.revision`);

const checks: readonly Omit<Check, "advice">[] = [
  {
    promise: "R1",
    name: "every version has its commit, and every commit its changes",
    // Sets and no lookups: a commit may hold ten thousand changes, and no index finds one of them by its key.
    find: () => sql`select ${named} || ' at ' || versions.from_commit as finding from (
        select tenant_id, type_seq, key, from_commit from daybook_record
        union all select tenant_id, type_seq, key, from_commit from daybook_record_version
        except select tenant_id, type_seq, key, commit_id from daybook_record_change) as versions
      union all select tenant_id || ' commit ' || id from daybook_record_commit as made where changes <> (select count(*)
        from daybook_record_change as change where change.tenant_id = made.tenant_id and change.commit_id = made.id)`,
  },
  {
    promise: "R1",
    name: "every change agrees with the versions that it made and ended",
    find: () => sql`select ${change} || ' ' || kind as finding from daybook_record_change as change
        where kind in ('created', 'updated') and not exists (select 1 from daybook_record as made where ${madeBy("made")})
          and not exists (select 1 from daybook_record_version as made where ${madeBy("made")})
      union all select ${change} || ' ' || kind from (
        select tenant_id, commit_id, type_seq, key, kind, revision from daybook_record_change where kind in ('updated', 'deleted')
        except select tenant_id, to_commit, type_seq, key, case ended when 'deleted' then 'deleted' else 'updated' end,
          revision + case ended when 'deleted' then 0 else 1 end from daybook_record_version) as change
      union all select ${change} || ' created' from (
        select tenant_id, commit_id, type_seq, key from daybook_record_change where kind = 'created'
        intersect select tenant_id, to_commit, type_seq, key from daybook_record_version) as change`,
  },
  {
    promise: "R1",
    name: "every commit knows the types that it changed",
    find: () => sql`select tenant_id || ' commit ' || commit_id || ' type ' || type_seq as finding from (
        select tenant_id, commit_id, type_seq, 1 as known from daybook_record_commit_type
        union all select distinct tenant_id, commit_id, type_seq, 2 from daybook_record_change) as told
      group by tenant_id, commit_id, type_seq having sum(known) <> 3`,
  },
  {
    promise: "R2",
    name: "a key has at most one version in a commit, and its versions do not overlap",
    // What is current ends with no commit, so it ends after all.
    find: () => sql`select ${named} as finding from (select tenant_id, type_seq, key, to_commit,
          lead(from_commit) over (partition by tenant_id, type_seq, key order by from_commit) as next_commit from (
            select tenant_id, type_seq, key, from_commit, null as to_commit from daybook_record
            union all select tenant_id, type_seq, key, from_commit, to_commit from daybook_record_version) as made) as versions
        where next_commit < coalesce(to_commit, next_commit + 1)
      union all select ${named} from daybook_record_change as versions group by tenant_id, type_seq, key, commit_id
        having count(*) > 1`,
  },
  {
    promise: "R4",
    name: "commits are numbered without gaps up to the head, and their times go back only where the clock was set back",
    find: () => sql`select tenant_id || ' commit ' || id as finding from (select tenant_id, id, committed_at, clock_from,
          row_number() over (partition by tenant_id order by id) as place,
          lag(committed_at) over (partition by tenant_id order by id) as before,
          lag(clock_from) over (partition by tenant_id order by id) as from_before from daybook_record_commit) as made
        where place <> id or (clock_from <> id and (before > committed_at or clock_from is distinct from from_before))
      union all select head.tenant_id || ' head ' || head.commit_id from daybook_record_head as head
        where commit_id <> coalesce((select max(id) from daybook_record_commit as made where made.tenant_id = head.tenant_id), 0)
      union all select distinct tenant_id || ' has no head' from daybook_record_commit
        where tenant_id not in (select tenant_id from daybook_record_head)`,
  },
  {
    promise: "R7",
    name: "every closed version was replaced by another one or deleted",
    find: () => sql`select ${named} || ' until ' || to_commit as finding from daybook_record_version as versions
      where (ended = 'replaced') <> exists (select 1 from (select tenant_id, type_seq, key, from_commit from daybook_record
          union all select tenant_id, type_seq, key, from_commit from daybook_record_version) as next
        where next.tenant_id = versions.tenant_id and next.type_seq = versions.type_seq and next.key = versions.key
          and next.from_commit = versions.to_commit)`,
  },
  {
    promise: "R8",
    name: "schema versions are numbered without gaps, and every version names one",
    find: () => sql`select ${named} as finding from ${versions} as versions where not exists (select 1 from daybook_record_schema record_schema
        where record_schema.type_seq = versions.type_seq and version = schema_version)
      union all select tenant_id || ' type ' || type_seq || ' version ' || version from (select tenant_id, type_seq, version,
        row_number() over (partition by type_seq order by version) as place from daybook_record_schema) as numbered
        where place <> version`,
  },
  {
    promise: "R7",
    name: "a relation connects entities that exist",
    find: () => sql`select ${named} as finding from daybook_record as versions where from_key is not null and not (
        exists (select 1 from daybook_record as end1 where end1.tenant_id = versions.tenant_id
          and end1.type_seq = versions.from_type_seq and end1.key = versions.from_key)
        and exists (select 1 from daybook_record as end2 where end2.tenant_id = versions.tenant_id
          and end2.type_seq = versions.to_type_seq and end2.key = versions.to_key))`,
  },
];

export const recordChecks: readonly Check[] = checks.map((check) => ({ ...check, advice }));
