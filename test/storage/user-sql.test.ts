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
