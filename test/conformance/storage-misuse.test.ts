import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { Client } from "pg";
import { manualClock, type Book, type OpenOptions, type UserTx, type Value } from "../../src/index.ts";
import { numbered } from "../storage/pair.ts";
import { backends, cleanup, openTest, type Backend } from "../support/open-test.ts";

async function openNotes(t: TestContext, backend: Backend, options: OpenOptions = {}): Promise<Book> {
  const { book } = await openTest(t, backend, { attach: false, ...options });
  await book.write((tx) => tx.sql`create table note (id text primary key, body text)`);
  return book;
}

const add = (tx: UserTx, id: string): Promise<object[]> => tx.sql`insert into note (id) values (${id})`;

async function notes(book: Book): Promise<string[]> {
  const rows = await book.read((tx) => tx.sql<{ id: string }>`select id from note order by id`);
  return rows.map((row) => row.id);
}

for (const backend of backends) {
  describe(backend, () => {
    test("a tx that is used after its transaction ended throws", async (t) => {
      const book = await openNotes(t, backend);
      let kept: UserTx | undefined;
      let undone: UserTx | undefined;
      await book.write(async (tx) => void (kept = tx));
      await book
        .write((tx) => {
          undone = tx;
          throw new Error("no");
        })
        .catch(() => undefined);

      for (const tx of [kept, undone]) {
        await assert.rejects(async () => tx && add(tx, "late"), {
          code: "invalid",
          message: /used after its transaction ended/,
        });
      }
      assert.deepEqual(await notes(book), []);
    });

    test("a reader that is used after its read ended throws", async (t) => {
      const book = await openNotes(t, backend);
      let kept: Pick<UserTx, "sql"> | undefined;
      await book.read(async (tx) => void (kept = tx));

      await assert.rejects(async () => kept && kept.sql`select 1`, {
        code: "invalid",
        message: /after its read ended/,
      });
    });

    const forgotten: Record<string, (tx: UserTx) => unknown> = {
      "is not awaited": (tx) => void add(tx, "forgotten"),
      "is only chained": (tx) => void add(tx, "forgotten").then(() => undefined),
      // SQLite answers at once, so nothing is under way there when the unit ends.
      ...(backend === "postgres" && {
        "loses a race": (tx: UserTx) => Promise.race([Promise.resolve(), add(tx, "forgotten")]),
      }),
      "is not awaited before another": (tx) => {
        void add(tx, "forgotten");
        return add(tx, "another");
      },
    };
    for (const [how, forget] of Object.entries(forgotten)) {
      test(`a unit with an operation that ${how} fails, and its neighbours do not`, async (t) => {
        const book = await openNotes(t, backend);

        const outcomes = await Promise.allSettled([
          ...numbered(20).map((id) => book.write((tx) => add(tx, id))),
          book.write((tx) => forget(tx)),
          ...numbered(20).map((id) => book.write((tx) => add(tx, `x${id}`))),
        ]);

        const [failed, ...rest] = outcomes.filter((outcome) => outcome.status === "rejected");
        assert.deepEqual(rest, []);
        assert.match(String(failed?.reason), /not awaited, so the transaction was undone/);
        assert.deepEqual(await notes(book), [...numbered(20), ...numbered(20).map((id) => `x${id}`)]);
      });
    }

    test("a unit that throws while operations are under way harms nobody", async (t) => {
      const book = await openNotes(t, backend, { connections: 2 });
      const fail = (tx: UserTx): Promise<unknown> =>
        Promise.all([add(tx, "same"), add(tx, "same"), add(tx, "other"), tx.sql`select count(*) from note`]);

      const outcomes = await Promise.allSettled(
        numbered(30).map((id) => book.write((tx) => (Number(id) % 3 === 0 ? fail(tx) : add(tx, id)))),
      );

      const failed = outcomes.filter((outcome) => outcome.status === "rejected");
      assert.deepEqual(new Set(failed.map(({ reason }) => (reason as { code: string }).code)), new Set(["conflict"]));
      assert.deepEqual(
        await notes(book),
        numbered(30).filter((id) => Number(id) % 3 !== 0),
      );
    });

    test("the book itself is refused inside write, with advice", async (t) => {
      const book = await openNotes(t, backend);
      const verbs: Record<string, () => Promise<unknown>> = {
        write: () => book.write(() => 1),
        read: () => book.read(async () => 1),
        backup: () => book.backup("never.db"),
        info: () => book.info(),
        doctor: () => book.doctor(),
        close: () => book.close(),
      };

      for (const [verb, call] of Object.entries(verbs)) {
        await assert.rejects(
          book.write(async (tx) => {
            await add(tx, verb);
            await call();
          }),
          { code: "invalid", message: new RegExp(`book\\.${verb} was called inside book\\.write: use the tx`) },
        );
      }
      await assert.rejects(
        book.write(() => book.tenant("acme").write(() => 1)),
        { code: "invalid" },
      );
      assert.deepEqual(await notes(book), []);
    });

    test("the book is welcome again in what a unit started and left to run after it", async (t) => {
      const book = await openNotes(t, backend);
      const { promise: gate, resolve: open } = Promise.withResolvers<void>();
      let later: Promise<unknown> | undefined;

      await book.write(async (tx) => {
        await add(tx, "now");
        later = gate.then(() => book.write((next) => add(next, "then")));
      });
      open();
      await later;

      assert.deepEqual(await notes(book), ["now", "then"]);
    });

    test("statements that would end the transaction are refused, and the unit with them", async (t) => {
      const book = await openNotes(t, backend);
      const statements: ((tx: UserTx) => Promise<unknown>)[] = [
        (tx) => tx.sql`begin`,
        (tx) => tx.sql`/* */ COMMIT;`,
        (tx) => tx.sql`-- a
          rollback`,
        (tx) => tx.sql`savepoint a`,
        (tx) => tx.sql`release unit`,
        (tx) => tx.sql`pragma foreign_keys = off`,
        (tx) => tx.sql`attach ':memory:' as a`,
        (tx) => tx.sql`vacuum`,
        (tx) => tx.sql`select 1; commit`,
      ];

      for (const statement of statements) {
        await assert.rejects(
          book.write(async (tx) => {
            await add(tx, "a");
            await statement(tx);
          }),
          { code: "invalid" },
        );
        await assert.rejects(
          book.read((tx) => statement(tx as UserTx)),
          { code: "invalid" },
        );
      }
      assert.deepEqual(await notes(book), []);
    });

    test("a semicolon in a text or a comment is no second statement", async (t) => {
      const book = await openNotes(t, backend);

      await book.write((tx) => tx.sql`insert into note (id, body) values ('a;b', ';') -- ; commit`);
      await book.write((tx) => tx.sql`/* ; */ insert into note (id) values ('c');`);

      assert.deepEqual(await notes(book), ["a;b", "c"]);
    });

    test("an object that claims to be a statement is refused as a value", async (t) => {
      const book = await openNotes(t, backend);
      const claim = JSON.parse('{ "kind": "sql", "strings": ["(select 1)"], "values": [] }') as Value;

      await assert.rejects(
        book.write((tx) => tx.sql`insert into note (id) values (${claim})`),
        { code: "invalid", message: /cannot be given to SQL/ },
      );
      await assert.rejects(
        book.read((tx) => tx.sql`select ${claim}`),
        { code: "invalid" },
      );
    });

    test("an error that a unit catches leaves it whole and usable", async (t) => {
      const book = await openNotes(t, backend);
      await book.write((tx) => add(tx, "taken"));

      const codes = await book.write(async (tx) => {
        const caught: string[] = [];
        await add(tx, "a");
        for (const attempt of [() => add(tx, "taken"), () => tx.sql`insert inot note`, () => add(tx, "a")]) {
          await attempt().catch((error: { code: string }) => caught.push(error.code));
        }
        await add(tx, "b");
        return caught;
      });

      assert.deepEqual(codes, ["conflict", "invalid", "conflict"]);
      assert.deepEqual(await notes(book), ["a", "b", "taken"]);
    });

    test("statements that a unit starts together fail and succeed each for itself", async (t) => {
      const book = await openNotes(t, backend);

      const outcomes = await book.write(async (tx) => {
        await add(tx, "first");
        const started = ["a", "first", "b", "first", "c"].map((id) => add(tx, id));
        return (await Promise.allSettled(started)).map((outcome) => outcome.status);
      });

      assert.deepEqual(outcomes, ["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled"]);
      assert.deepEqual(await notes(book), ["a", "b", "c", "first"]);
    });

    test("a unit resolves to what its function returned, and a statement to its rows", async (t) => {
      const book = await openNotes(t, backend);

      const result = await book.write(async (tx) => ({
        inserted: await tx.sql<{ id: string }>`insert into note (id) values ('a') returning id`,
        none: await tx.sql`update note set body = 'x' where id = 'nobody' returning id`,
        tenant: tx.tenant,
      }));

      assert.deepEqual(result, { inserted: [{ id: "a" }], none: [], tenant: "default" });
    });

    test("a unit that awaits something else for a second is undone, and its neighbours are not", async (t) => {
      const clock = manualClock();
      const book = await openNotes(t, backend, { clock });
      let late: unknown;
      let leftBehind: Promise<void> | undefined;
      const slow = book.write((tx) => {
        leftBehind = (async () => {
          await add(tx, "slow");
          await clock.sleep(5000);
          await add(tx, "late").catch((error: unknown) => (late = error));
        })().catch((error: unknown) => void (late = error));
        return leftBehind;
      });
      const neighbours = [...numbered(5).map((id) => book.write((tx) => add(tx, id)))];

      await passSlowly(clock, slow);
      // Not below a second; what the machine itself kept it waiting comes on top.
      await assert.rejects(slow, {
        code: "invalid",
        message: /waited [1-9]\d{3} ms for something that is not the book/,
      });
      await Promise.all(neighbours);
      await clock.advance(5000);
      await leftBehind;

      assert.match(String(late), /used after its transaction ended/);
      assert.deepEqual(await notes(book), numbered(5));
    });

    test("short waits add up, and time in the database does not count", async (t) => {
      const clock = manualClock();
      const { book, url } = await openTest(t, backend, { attach: false, clock });
      await book.write((tx) => tx.sql`create table note (id text primary key)`);
      const holder = backend === "postgres" ? await connect(t, url) : undefined;
      const waiting = async (tx: UserTx, times: number): Promise<void> => {
        for (let turn = 0; turn < times; turn++) {
          await clock.advance(300);
          await add(tx, `${times}-${turn}`);
          if (holder === undefined) continue; // SQLite has no statement that is still under way while the clock moves
          await holder.query("select pg_advisory_lock($1)", [turn]);
          const statement = tx.sql`select pg_advisory_xact_lock(${turn})`;
          await clock.advance(900);
          await holder.query("select pg_advisory_unlock($1)", [turn]);
          await statement;
        }
      };

      await book.write((tx) => waiting(tx, 3));
      const tooOften = book.write((tx) => waiting(tx, 5));

      await assert.rejects(tooOften, { code: "invalid" });
      assert.deepEqual(await notes(book), ["3-0", "3-1", "3-2"]);
    });
  });
}

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  return client;
}

/** Moves the clock until `end` has settled: how soon a unit begins is the back end's affair. */
async function passSlowly(clock: ReturnType<typeof manualClock>, end: Promise<unknown>): Promise<void> {
  let settled = false;
  const note = (): void => void (settled = true);
  end.then(note, note);
  while (!settled) await clock.advance(10);
}
