import assert from "node:assert/strict";
import { test } from "node:test";
import { checkUserSql } from "../../src/storage/user-sql.ts";

const words = [
  ...["begin", "start transaction", "commit", "end", "rollback", "abort", "savepoint a", "release a"],
  ...["prepare transaction 'a'", "deallocate all", "pragma foreign_keys = off", "attach 'a.db' as a", "detach a"],
  ...["vacuum", "vacuum into 'a.db'", "set search_path to a", "reset all", "discard all", "listen a", "unlisten *"],
  ...["copy note from stdin", "lock table note"],
];

test("a statement that would end, nest or reconfigure the transaction is refused", () => {
  for (const text of words) {
    assert.throws(() => checkUserSql(text), {
      code: "invalid",
      message: /cannot run inside a transaction of the book.*begins and ends with book\.write/,
    });
  }
});

test("it is refused in any case, behind white space, comments and with a semicolon too", () => {
  for (const text of words) {
    const disguises = [
      text.toUpperCase(),
      `${text};`,
      ` \t\r\n${text}`,
      `\uFEFF${text}`,
      `-- a comment\n${text}`,
      `--\r\n${text}`,
      `/* a comment */${text}`,
      `/* select */ -- select\n/**/ ${text} /* select */`,
      text.replace(/^\w+/, (word) => `${word}/* glued */`),
    ];
    for (const disguise of disguises) {
      assert.throws(() => checkUserSql(disguise), { code: "invalid" }, JSON.stringify(disguise));
    }
  }
});

test("a comment that the two engines read differently is refused", () => {
  // PostgreSQL nests comments and ends a line at a carriage return; SQLite does neither.
  for (const text of ["/* /* */ select */ commit", "-- \rcommit and\nchain", "select 1 /* /* */", "-- a\rselect 1"]) {
    assert.throws(() => checkUserSql(text), { code: "invalid", message: /comment/ }, JSON.stringify(text));
  }
});

test("a second statement is refused", () => {
  for (const text of [
    "select 1; select 2",
    "select 1;;",
    "select 1; /* a */ x",
    "select ';'; commit",
    "select 1;\n'a'",
  ]) {
    assert.throws(() => checkUserSql(text), { code: "invalid", message: /one statement at a time/ });
  }
});

test("one statement is allowed, whatever its texts, names and comments contain", () => {
  const texts = [
    "select 1",
    "select 1;",
    "select 1; -- commit; commit",
    "select 1; /* commit; */ ",
    "select 'commit; rollback'",
    "select 'it''s; commit'",
    'select "a;b" from "begin"',
    "select `a;b`",
    "select [a;b] from note",
    "select $$a; commit$$",
    "select $tag1$ ; $tag1$",
    "/* ; commit */ select 1",
    "-- it's; commit\nselect 1",
    "-- from a /* to b\nselect 1",
    "-- dos\r\nselect 1",
    "(select 1)",
    "with begin as (select 1) select * from begin",
    "insert into note (begin) values (1)",
    "update note set body = ? where body = 'end;'",
    "create trigger a after insert on note begin select 1; end",
    "create temporary trigger if not exists a after insert on note begin update note set size = 1; select 2; end;",
  ];

  for (const text of texts) assert.doesNotThrow(() => checkUserSql(text), text);
});

test("no statement at all is refused", () => {
  for (const text of ["", "  \n", ";", "-- select 1", "/* select 1 */"]) {
    assert.throws(() => checkUserSql(text), { code: "invalid", message: /empty/ }, JSON.stringify(text));
  }
});

test("the message shows the statement, shortened to a line", () => {
  const text = `commit\n   ${"x".repeat(200)}`;

  assert.throws(() => checkUserSql(text), { message: /"commit" cannot run .*: "commit x{72}…"/ });
});

test("a statement that would change or bind a table of Daybook is refused by the table's name", () => {
  const texts = [
    "insert into daybook_job (id) values (1)",
    "INSERT OR REPLACE INTO Daybook_Job values (1)",
    "replace into daybook_job values (1)",
    "update daybook_job set status = 'x'",
    "update or ignore daybook_job set status = 'x'",
    "update only daybook_job as job set status = 'x'",
    'update "daybook_job" set status = 1',
    "update [daybook_job] set status = 1",
    "update `daybook_job` set status = 1",
    "update daybook.daybook_job set status = 1",
    'update "daybook" . /* here */ "daybook_job" set status = 1',
    "delete from main.daybook_job",
    "with old as (select 1) delete from only daybook_job",
    "with gone as (delete from daybook_job returning *) select * from gone",
    "explain analyze delete from daybook_job",
    "merge into daybook_job using a on true when matched then delete",
    "select 1 as id into daybook_job",
    "drop table daybook_job",
    "drop table if exists mine, daybook.daybook_job",
    "alter table daybook_job add column mine text",
    "alter table if exists only daybook.daybook_job add column mine text",
    'ALTER TABLE main."DAYBOOK_JOB" drop column name',
    "alter table [daybook_job] rename to mine",
    "explain alter table `daybook_job` rename column name to mine",
    "alter table mine rename to daybook_job",
    "alter table mine add column job_id text references daybook_job (id)",
    "alter table mine attach partition daybook_job for values in (1)",
    "alter table mine inherit daybook_job",
    "alter index daybook_job rename to mine",
    "truncate daybook_job",
    "truncate table mine, daybook_job",
    "reindex table daybook_job",
    "reindex daybook_job",
    "create index mine on daybook_job (id)",
    "create unique index concurrently if not exists mine on only daybook_job (id)",
    "create trigger mine after insert on daybook_job begin select 1; end",
    "create trigger mine after insert on note begin delete from daybook_job; end",
    "create table daybook_job (id text)",
    "create temp table if not exists daybook_job (id text)",
    "create or replace view daybook_job as select 1",
    "create table mine (job_id text references daybook_job (id))",
    "create rule mine as on insert to daybook_job do instead nothing",
    "do $$ begin delete from daybook_job; end $$",
    "comment on table daybook_job is 'mine'",
    "create table mine () inherits (daybook_job)",
    "create table mine partition of daybook_job for values in (1)",
    "select setval('daybook_job', 1)",
    "select query_to_xml('delete from daybook_job', true, true, '')",
  ];
  for (const text of texts) {
    assert.throws(
      () => checkUserSql(text),
      {
        code: "invalid",
        message: /"daybook_job" is a table of Daybook, which SQL may read.*tx\.jobs/,
        details: { table: "daybook_job" },
      },
      text,
    );
  }
});

test("no text, name or array of PostgreSQL hides a change of Daybook's tables", () => {
  const gone = "b as (delete from daybook_job returning 1)";
  const tag = `$${"x".repeat(80)}$`;
  const texts = [
    String.raw`with a as (select E'\''), ${gone} select 'x' from b`,
    String.raw`with a as (select e'\\\''), ${gone} select 'x' from b`,
    String.raw`with a as (select E'it''s \''), ${gone} select 'x' from b`,
    `with a as (select E'a'\n'\\''), ${gone} select 'x' from b`,
    `with a as (select E'a' -- it goes on\n -- and on\n '\\''), ${gone} select 'x' from b`,
    String.raw`with a as (select type_e'\'), ${gone} select '' from b`,
    String.raw`with a as (select éE'\'), ${gone} select '' from b`,
    `with a$$ as (select 1), ${gone} select 1 as c$$ from b`,
    `with é$$ as (select 1), ${gone} select 1 as c$$ from b`,
    `with a as (select $é$ ' $é$), ${gone} select '' from b`,
    `with a as (select ${tag} ' ${tag}), ${gone} select '' from b`,
    `with a as (select 1$$ ' $$), ${gone} select '' from b`,
  ];
  for (const text of texts) {
    assert.throws(() => checkUserSql(text), { message: /"daybook_job" is a table of Daybook/ }, text);
  }
  const brackets = `with a as (select (array[1])[length(']')]), ${gone} select '' from b`;
  assert.throws(() => checkUserSql(brackets), { code: "invalid", message: /the brackets .* mean different/ });
  for (const text of [
    String.raw`select E'it\'s; delete from daybook_job', e'\\', 'C:\'`,
    "select array['a', 'b'], array[[1, 2], [3, 4]], tags[1] from note",
    "select größe, a$b, 1e5 from ñandú where id = $1",
  ]) {
    assert.doesNotThrow(() => checkUserSql(text), text);
  }
});

test("a statement that only reads tables of Daybook is allowed, and so are names that look like them", () => {
  const texts = [
    "select * from daybook_job for update of daybook_job",
    "select * from daybook_job job join daybook.daybook_lane lane on lane.seq = job.lane_seq",
    "insert into mine select id from daybook_job",
    "update mine set done = 1 from daybook_job job where job.id = mine.job_id",
    "delete from mine where id not in (select id from daybook_job)",
    "insert into mine (id) values (1) on conflict (id) do update set id = 2",
    "create view my_jobs as select * from daybook_job",
    "create table copied as select * from daybook_job",
    "create trigger mine after insert on note begin insert into mine select id from daybook_job; end",
    "create table my_daybook_job (daybook_id text)",
    "drop table mydaybook_job",
    "alter table mine add column daybook_job_id text default 'daybook_job'",
    "alter table mine rename column daybook_job_id to daybook_id",
    'alter table mine rename "daybook_job_id" to job_id',
    "alter table mine drop column daybook_job_id",
    "alter table mine add constraint daybook_job_id_is_known check (daybook_job_id is not null)",
    "alter table mine alter column daybook_job_id set not null",
    "insert into note (body) values ('delete from daybook_job')",
    "comment on table mine is 'as in daybook_job'",
    "explain delete from mine",
  ];
  for (const text of texts) assert.doesNotThrow(() => checkUserSql(text), text);
});

test("a statement that may leave something behind in its session is known by its text, and others are not taken for one", () => {
  const leaving = [
    "select set_config('a.b', 'c', false)",
    "select pg_advisory_lock(1)",
    "select pg_catalog.pg_try_advisory_lock_shared(1, 2)",
    "select \"set_config\" ('a.b', 'c', false)",
    "create temp table mine (id text)",
    "declare c cursor with hold for select 1",
    "do $$ begin perform set_config('a.b', 'c', false); end $$",
    "select my_function(1)",
    "select a, public.my_function(1) from b",
    "insert into note (body) select my_function(1)",
    "call mine()",
  ];
  const leavingNothing = [
    "insert into note (id, body) values (?, ?) on conflict (id) do update set body = lower(excluded.body) returning id",
    "select count(*), coalesce(max(id), 0) from note where id in (1, 2) and not exists (select 1 from other)",
    "create table if not exists mine (id bigint primary key, amount numeric(10, 2), check (id > 0))",
    "with recent (id) as (select id from note) update note set n = (select sum(n) from recent) where body = 'set_config'",
    "select jsonb_build_object('a', 1), row_number() over (partition by a order by b) from note",
  ];

  for (const text of leaving) assert.equal(checkUserSql(text).leaves, true, text);
  for (const text of leavingNothing) assert.equal(checkUserSql(text).leaves, false, text);
});

test("the schema of the book is neither dropped nor renamed, and others are", () => {
  for (const text of [
    "drop schema daybook cascade",
    'drop schema if exists mine, "daybook"',
    "alter schema daybook rename to mine",
    "DROP SCHEMA Daybook",
  ]) {
    assert.throws(() => checkUserSql(text), { code: "invalid", message: /^the tables of Daybook are in that schema/ });
  }
  for (const text of ["create schema mine", "drop schema mine cascade", "alter schema mine rename to other"]) {
    checkUserSql(text);
  }
});
