// What the server says in the book's words: the code decides whether a caller tries again, so it must be true.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Client } from "pg";
import type { ErrorCode } from "../../src/index.ts";
import { fromPostgresError, isConnectionLost } from "../../src/storage/postgres/postgres-error.ts";
import { rawSql, sql } from "../../src/storage/sql.ts";
import { cleanup, openTest, openTestStore } from "../support/open-test.ts";

const states: [sqlstate: string, code: ErrorCode, advice: RegExp][] = [
  ["0A000", "invalid", /cannot do that/],
  ["21000", "invalid", /check the statement/],
  ["2D000", "invalid", /begins and ends with book\.write/],
  ["54001", "invalid", /too large/],
  ["55000", "invalid", /not in a state/],
  ["55P03", "busy", /holds the lock/],
  ["P0001", "invalid", /a function of the database refused it/],
  ["25P03", "timeout", /waited between two statements/],
  ["25P04", "timeout", /took too long/],
  ["57P05", "unavailable", /idle for too long/],
  [
    "25006",
    "forbidden",
    /in a read, use book\.write instead; elsewhere the server \(a standby\?\) or the role may only/,
  ],
  ["XX001", "internal", /look at its log/],
  ["72000", "internal", /does not expect/],
  ["08006", "unavailable", /the connection was lost/],
];

for (const [state, code, advice] of states) {
  test(`SQLSTATE ${state} is ${code}`, () => {
    const error = fromPostgresError(Object.assign(new Error("it failed"), { code: state }), "postgres://host/db");

    assert.ok(error instanceof Error);
    assert.equal((error as Error & { code: string }).code, code);
    assert.match(error.message, advice);
    assert.doesNotMatch(error.message, /is the server running/);
  });
}

test("a session that the server ended while it was idle is a lost connection, an overlong transaction is not", () => {
  const lost = (code: string): boolean =>
    isConnectionLost(fromPostgresError(Object.assign(new Error("ended"), { code }), "postgres://host/db"));

  assert.deepEqual(["57P05", "25P03", "25P04", "0A000"].map(lost), [true, false, false, false]);
});

test("an exception that a user's function raises is invalid", async (t) => {
  const { book } = await openTest(t, "postgres");

  const writing = book.write((tx) => tx.sql`do $$ begin raise exception 'no more milk'; end $$`);

  await assert.rejects(writing, { code: "invalid", message: /no more milk .*P0001/ });
});

describe("a statement that was prepared before its table changed", () => {
  for (const way of ["read", "engine", "shared"] as const) {
    test(`is sent anew: ${way}`, async (t) => {
      const { store, url } = await openTestStore(t, "postgres", { connections: 2 });
      await store.write((tx) => tx.run(rawSql("create table note (id bigint)")));
      await store.write((tx) => tx.run(sql`insert into note values (1)`));
      const all = sql`select * from note`;
      const ask = (): Promise<object[]> =>
        way === "read" ? store.read(all) : store.write(async (tx) => tx.all<object>(all), { by: way });
      await Promise.all([ask(), ask(), ask()]);
      const newer = new Client({ connectionString: url });
      await newer.connect();
      cleanup(t, () => newer.end());

      await newer.query("alter table daybook.note add column body text");

      for (let turn = 0; turn < 3; turn++) assert.deepEqual(await ask(), [{ id: 1, body: null }]);
    });
  }
});
