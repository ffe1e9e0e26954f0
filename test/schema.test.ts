import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { dumpPath, dumpSchema } from "../schema/dump.ts";
import { eventColumns } from "../src/events/event.ts";
import { migrations } from "../src/open/migrations.ts";
import { openStore } from "../src/storage/open-store.ts";
import type { Migration } from "../src/storage/migrate.ts";
import { rawSql, type Dialect } from "../src/storage/sql.ts";
import type { Store } from "../src/storage/store.ts";
import { backends, cleanup, openTestStore, testUrl } from "./support/open-test.ts";

/** Tables whose rows belong to no tenant: one process serves all of them, and the schema is everybody's. */
const withoutTenant = [
  ...[
    "migration",
    "place",
    "session",
    ...["session_host", "session_queue"],
    "definition",
    "listener_change",
    "run_fold",
    "schedule_zone",
    "retention",
    // Who may use the book: its owner looks after all of them, and each says for which tenant it is.
    "token",
    "login",
  ],
  // Each row is of one series of runs, which has the tenant, and is found by that alone.
  ...["run_rollup", "run_failure"],
  // Each row is of one job, which has the tenant, and has its number.
  ...["line", "job_pin"],
].map((name) => `daybook_${name}`);

/** Indexes that lead with a row's inner key like those of references, or with an id that the book makes: jobs, their rows of
 *  other tables and runs have no foreign keys, which cost each job (decision 018). */
const byNumberOrId = [
  ...["daybook_job_id_key", "sqlite_autoindex_daybook_job_1", "runs_by_id", "operations_by_id"],
  ...["jobs_of_group", "jobs_one_retry", "job_keys_of_job", "job_steps_of_job", "permits_of_job", "runs_one_per_job"],
  "reservations_one_per_lane",
];

/** Indexes that lead with neither the tenant nor a row's inner key: what serves every tenant looks through all of them. */
const acrossTenants = [
  "rates_to_open", // and lets in those whose rate has opened
  "schedules_due", // and fires the schedules that are due
  "call_hosts_to_probe", // and lets a call try a host that was left alone
  "operations_open", // a process that ends another finds what that had begun
  "replies_to_leave", // and lets go what is a day old
  "leases_to_expire", // and ends the runs of those that ran out
  "leases_to_remove", // and lets go what is a day old
  "run_commands_open", // a worker ends the programs that a dead one of its host has left behind
];

for (const backend of backends) {
  test(`${backend}: the schema dump in git is what a fresh book has`, async (t) => {
    const { store } = await openTestStore(t, backend);

    const dump = await dumpSchema(store);

    assert.equal(dump, readFileSync(dumpPath(backend), "utf8"), `schema/${backend}.sql is out of date: npm run schema`);
  });

  test(`${backend}: a list of a table's columns names all of them`, async (t) => {
    const { store } = await openTestStore(t, backend);
    const all = await columnsOf(store, "daybook_event");
    assert.deepEqual(eventColumns.strings[0]?.split(/,\s+/).toSorted(), all.toSorted());
  });

  test(`${backend}: every tenant's table and index leads with the tenant (N1)`, async (t) => {
    const { store } = await openTestStore(t, backend);

    assert.deepEqual(await tenantFaults(store), []);
  });

  test(`${backend}: the tenant lint finds a table, an index and a key that do not lead with the tenant`, async (t) => {
    const planted = [
      "create table loose (id bigint)",
      "create table late (seq bigint primary key, id text, tenant_id text, unique (id, tenant_id))",
      "create table bare (seq bigint primary key, tenant_id text)",
      "create table fine (seq bigint primary key, tenant_id text, id text, unique (tenant_id, id))",
      "create index fine_by_id on fine (id)",
      "create table child (seq bigint primary key, tenant_id text, fine_seq bigint references fine (seq), other_seq bigint)",
      "create index children_of_fine on child (fine_seq)",
      "create index children_of_other on child (other_seq)",
      "create index children on child (tenant_id)",
    ];
    const number = (migrations.at(-1)?.number ?? 0) + 1;
    const migration: Migration = { number, name: "planted", up: planted.map(rawSql) };
    const store = await openStore(await testUrl(t, backend), [...migrations, migration]);
    cleanup(t, () => store.close());

    const faults = (await tenantFaults(store)).filter((fault) => /^(loose|late|bare|fine|child):/.test(fault));

    const expected = [
      /^bare: no key or index leads with tenant_id/,
      /^child: the index children_of_other leads with other_seq/,
      /^fine: the index fine_by_id leads with id/,
      /^late: the index .* leads with id/,
      /^loose: has no tenant_id/,
    ];
    assert.equal(faults.length, expected.length, faults.join("\n"));
    expected.forEach((each, index) => assert.match(faults[index] ?? "", each));
  });
}

test("the numbers of migrations are unique and ascending", () => {
  const numbers = migrations.map((migration) => migration.number);

  assert.deepEqual(
    numbers,
    [...new Set(numbers)].sort((one, other) => one - other),
  );
  assert.ok(numbers.every((number) => Number.isInteger(number) && number >= 1));
});

test("every table on SQLite is strict", async (t) => {
  const { store } = await openTestStore(t, "sqlite");

  const loose = await store.read<{ name: string }>(
    rawSql("select name from pragma_table_list where schema = 'main' and type = 'table' and not strict order by name"),
  );

  // SQLite's own catalogue is the only one that is not, and cannot be.
  assert.deepEqual(loose, [{ name: "sqlite_schema" }]);
});

/** `inner_key`: it leads with a row's inner key (its own `seq`, or a reference to another's). Such a number belongs to one
 *  row and so to one tenant, and nobody outside ever sees it or can ask for it. */
type IndexRow = { table_name: string; index_name: string; leading: string | null; inner_key: number | boolean };

/** What is wrong with the tables and indexes of a book, one line each, sorted. */
async function tenantFaults(store: Store): Promise<string[]> {
  const tables = await store.read<{ name: string; has_tenant: number | boolean }>(rawSql(tableQuery[store.dialect]));
  const indexes = await store.read<IndexRow>(rawSql(indexQuery[store.dialect]));
  return tables
    .filter(({ name }) => !withoutTenant.includes(name))
    .flatMap(({ name, has_tenant: hasTenant }) => {
      if (!hasTenant) return [`${name}: has no tenant_id; add it, or name the table in withoutTenant`];
      const own = indexes.filter((index) => index.table_name === name);
      const wrong = own.filter(
        (index) =>
          index.leading !== "tenant_id" &&
          !index.inner_key &&
          !byNumberOrId.includes(index.index_name) &&
          !acrossTenants.includes(index.index_name),
      );
      const bare = wrong.length === 0 && !own.some((index) => index.leading === "tenant_id");
      return [
        ...wrong.map((index) => `${name}: the index ${index.index_name} leads with ${index.leading}, not tenant_id`),
        ...(bare ? [`${name}: no key or index leads with tenant_id`] : []),
      ];
    })
    .sort();
}

const tableQuery: Readonly<Record<Dialect, string>> = {
  sqlite: `select name, exists (select 1 from pragma_table_info(tables.name) where name = 'tenant_id') as has_tenant
    from pragma_table_list as tables where schema = 'main' and type = 'table' and name not like 'sqlite\\_%' escape '\\'`,
  postgres: `select relname as name, exists (select 1 from pg_attribute where attrelid = pg_class.oid
    and attname = 'tenant_id') as has_tenant
    from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r'`,
};

// On SQLite an integer primary key is the row's own number and has no index.
const indexQuery: Readonly<Record<Dialect, string>> = {
  sqlite: `select tables.name as table_name, indexes.name as index_name, columns.name as leading,
      columns.name = 'seq' or columns.name in (select "from" from pragma_foreign_key_list(tables.name) where "to" = 'seq')
        as inner_key
    from pragma_table_list as tables, pragma_index_list(tables.name) as indexes, pragma_index_info(indexes.name) as columns
    where tables.schema = 'main' and tables.type = 'table' and columns.seqno = 0`,
  postgres: `select tables.relname as table_name, indexes.relname as index_name, attname as leading,
      attname = 'seq' or exists (select 1 from pg_constraint join pg_attribute as target on target.attrelid = confrelid
        and target.attnum = confkey[1] where contype = 'f' and conrelid = indrelid and conkey[1] = indkey[0]
        and target.attname = 'seq') as inner_key
    from pg_index join pg_class as indexes on indexes.oid = indexrelid join pg_class as tables on tables.oid = indrelid
      left join pg_attribute on attrelid = indrelid and attnum = indkey[0]
    where tables.relnamespace = current_schema()::regnamespace`,
};

async function columnsOf(store: Store, table: string): Promise<string[]> {
  const listed = {
    sqlite: `select name from pragma_table_info('${table}')`,
    postgres: `select attname as name from pg_attribute
      where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped`,
  };
  return (await store.read<{ name: string }>(rawSql(listed[store.dialect]))).map(({ name }) => name);
}
