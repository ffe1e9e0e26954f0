// A million versions, made with SQL in the book's own tables, in a plain table, and in a table like the design's.
import { DatabaseSync } from "node:sqlite";

export const keysCount = 100_000;
export const versionsEach = 10;

export function fillRecords(path: string): void {
  const db = new DatabaseSync(path);
  // The session that has the book open beats meanwhile.
  db.exec(
    "pragma busy_timeout = 10000; pragma synchronous = off; pragma cache_size = -400000; pragma temp_store = memory",
  );
  const body = (n: string): string =>
    `json_object('id', printf('k%07d', ${n} % ${keysCount}), 'n', ${n}, 'status', 's' || (${n} % 1000), 'text', '${"x".repeat(100)}')`;
  const numbers = `with recursive g(n) as (select 0 union all select n + 1 from g where n < ${keysCount * versionsEach - 1})`;
  const closed = keysCount * (versionsEach - 1);
  db.exec("begin");
  db.exec(
    "delete from daybook_record; delete from daybook_record_change; delete from daybook_record_commit_type; delete from daybook_record_commit",
  );
  const type = (db.prepare("select seq from daybook_record_type where name = 'item'").get() as { seq: number }).seq;
  // Commit n + 1 writes key n % keys: every key is written once in each round.
  db.exec(`insert into daybook_record_commit (tenant_id, id, committed_at, clock_from, changes, metadata)
    ${numbers} select 'default', n + 1, n, 1, 1, '{}' from g`);
  db.exec(
    `insert into daybook_record_commit_type (tenant_id, type_seq, commit_id) ${numbers} select 'default', ${type}, n + 1 from g`,
  );
  db.exec(`insert into daybook_record_change (tenant_id, commit_id, position, type_seq, key, kind, revision)
    ${numbers} select 'default', n + 1, 0, ${type}, printf('k%07d', n % ${keysCount}), case when n < ${keysCount} then 'created' else 'updated' end, n / ${keysCount} + 1 from g`);
  db.exec(`insert into daybook_record_version (tenant_id, type_seq, key, body, revision, schema_version, from_commit, to_commit, ended)
    ${numbers} select 'default', ${type}, printf('k%07d', n % ${keysCount}), ${body("n")}, n / ${keysCount} + 1, 1, n + 1, n + 1 + ${keysCount}, 'replaced' from g where n < ${closed}`);
  db.exec(`insert into daybook_record (tenant_id, type_seq, key, body, revision, schema_version, from_commit)
    ${numbers} select 'default', ${type}, printf('k%07d', n % ${keysCount}), ${body("n")}, ${versionsEach}, 1, n + 1 from g where n >= ${closed}`);
  db.exec(
    `update daybook_record_head set commit_id = ${keysCount * versionsEach}, committed_at = ${keysCount * versionsEach}`,
  );
  db.exec(
    "create table plain (id integer primary key, tenant text not null, key text not null, body text not null, n integer not null, unique (tenant, key)) strict",
  );
  db.exec(
    `insert into plain (tenant, key, body, n) ${numbers} select 'default', printf('k%07d', n % ${keysCount}), ${body("n")}, n from g where n >= ${closed}`,
  );
  db.exec(
    "create table seed_history (id integer primary key autoincrement, entity_type text not null, entity_key text not null, fields_json text not null, commit_id integer not null)",
  );
  db.exec(
    `insert into seed_history (entity_type, entity_key, fields_json, commit_id) ${numbers} select 'item', printf('k%07d', n % ${keysCount}), ${body("n")}, n + 1 from g`,
  );
  db.exec("create index seed_lookup on seed_history (entity_type, entity_key, commit_id desc)");
  db.exec("commit; analyze daybook_record; analyze daybook_record_version");
  db.close();
}
