// The usual mistakes. Each error says what was wrong and what to do, and its stack names the line of the program that made it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { entity, job, open, schedule, type Book, type UserTx } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const pay = job("pay", { params: z.object({ order: z.string() }), run: () => undefined });
const tell = job("tell", { run: (_params: Readonly<Record<string, unknown>>) => undefined });
const Note = entity("note", { schema: z.object({ id: z.string(), text: z.string().nullable() }), key: "id" });

type Mistake = { readonly make: (book: Book) => Promise<unknown>; readonly says: string | Record<Backend, string> };

// The line of each mistake ends with its name in a comment.
const mistakes: Record<string, Mistake> = {
  "an operation that is not awaited": {
    make: (book) =>
      book.write(async (tx) => {
        await tx.jobs.enqueue(pay, { order: "1" });
        void tx.jobs.enqueue(pay, { order: "2" }); // an operation that is not awaited
      }),
    says: "tx.jobs.enqueue (HERE) was not awaited, so the transaction was undone: await it",
  },
  "a statement that is not awaited": {
    make: (book) =>
      book.write((tx) => {
        void tx.sql`select 1 as one`; // a statement that is not awaited
      }),
    says: "tx.sql (HERE) was not awaited, so the transaction was undone: await it",
  },
  "tx used after its end": {
    async make(book) {
      const late: UserTx[] = [];
      await book.write((tx) => void late.push(tx));
      for (const tx of late) await tx.sql`select 1 as one`; // tx used after its end
    },
    says: "tx.sql was used after its transaction ended: await everything inside the function given to book.write",
  },
  "the book inside write": {
    make: (book) =>
      book.write(async () => {
        await book.jobs.enqueue(pay, { order: "1" }); // the book inside write
      }),
    says: "book.jobs.enqueue was called inside book.write: use the tx that your function was given instead",
  },
  "params of the wrong shape": {
    async make(book) {
      await book.jobs.enqueue(pay, { order: 17 } as never); // params of the wrong shape
    },
    says: 'params of job "pay" do not fit its schema: order: Invalid input: expected string, received number',
  },
  "params of the wrong shape in write": {
    make: (book) =>
      book.write(async (tx) => {
        await tx.jobs.enqueue(pay, {} as never); // params of the wrong shape in write
      }),
    says: 'params of job "pay" do not fit its schema: order: Invalid input: expected string, received undefined',
  },
  "an unknown option": {
    async make(book) {
      await book.jobs.enqueue(pay, { order: "1" }, { prio: 3 } as never); // an unknown option
    },
    says: 'unknown option "prio" for enqueue of "pay". Known: queue, priority, attempts, backoff, timeout, losses, at, in, key, keyScope, onConflict, idempotencyKey, tags',
  },
  "an unknown option of open": {
    async make() {
      await open("shop.db", { durabilty: "normal" } as never); // an unknown option of open
    },
    says: 'unknown option "durabilty" for open: did you mean "durability"? Known: tenant, durability, schema, connections, migrate, attach, use, worker, metadata, views, files, calls, zone, retention, log, clock, random, waitClock, fault, readOnly',
  },
  "a statement that is wrong": {
    make: (book) =>
      book.write(async (tx) => {
        await tx.sql`select ${1} as one`;
        await tx.sql`select * from invoice where id = ${17}`; // a statement that is wrong
      }),
    says: {
      sqlite: 'no such table: invoice (SQLite 1, BOOK): check the statement: "select * from invoice where id = ?"',
      postgres:
        'relation "invoice" does not exist (PostgreSQL 42P01, BOOK): check the statement: "select * from invoice where id = ?"',
    },
  },
  "a reading statement that is wrong": {
    make: (book) =>
      book.read(async (tx) => {
        await tx.sql`select * from invoice`; // a reading statement that is wrong
      }),
    says: {
      sqlite: 'no such table: invoice (SQLite 1, BOOK): check the statement: "select * from invoice"',
      postgres:
        'relation "invoice" does not exist (PostgreSQL 42P01, BOOK): check the statement: "select * from invoice"',
    },
  },
  "an unknown job": {
    async make(book) {
      await book.jobs.enqueue("pya", { order: "1" }); // an unknown job
    },
    says: 'this book does not know the job "pya": did you mean "pay"? List it in "use", or open the book with worker: false to enqueue for others',
  },
  "what is not there": {
    async make(book) {
      await book.jobs.cancel("o-17"); // what is not there
    },
    says: "there is no job o-17",
  },
  "seconds in place of milliseconds": {
    async make(book) {
      await book.jobs.enqueue(pay, { order: "1" }, { at: 1_790_000_000 }); // seconds in place of milliseconds
    },
    says: "at is 1790000000, which looks like seconds: give milliseconds (1790000000000 for 2026-09-21T14:13:20.000Z) or a Date",
  },
  "equal to null": {
    async make(book) {
      const notes = book.records.query(Note);
      await notes.where((note) => note("text").eq(null as never)).list(); // equal to null
    },
    says: '"eq" does not compare with null: use isNull() instead',
  },
  "a filter that is null": {
    async make(book) {
      await book.jobs.list({ name: null } as never); // a filter that is null
    },
    says: "name is null in the list of jobs, which nothing equals: leave it out, or give a value",
  },
  "a record of the wrong shape": {
    async make(book) {
      await book.records.put(Note, { id: "a", text: 5 } as never); // a record of the wrong shape
    },
    says: 'the document does not fit the schema of "note": text: Invalid input: expected string, received number',
  },
  "a cron that cannot be": {
    async make() {
      schedule("s", { cron: "61 * * * *", job: pay, params: { order: "1" } }); // a cron that cannot be
    },
    says: 'cron: the minute is "61"; "61" is not a number from 0 to 59, a range, a step such as "*/2"',
  },
  "a duration in words": {
    async make(book) {
      await book.jobs.enqueue(pay, { order: "1" }, { in: "5 minuts" }); // a duration in words
    },
    says: 'in is "5 minuts", which is not a duration; use milliseconds as a whole number, or text such as "250ms", "30s", "5m", "1h30m", "7d", "2w"',
  },
  "a time in words": {
    async make(book) {
      await book.jobs.enqueue(pay, { order: "1" }, { at: "tomorrow" }); // a time in words
    },
    says: 'at is "tomorrow", which is not a time; use epoch milliseconds, a Date, or ISO 8601 text with a zone such as "2026-01-31T09:30:00+01:00"',
  },
  "a number as a text": {
    async make() {
      job("other", { attempts: "3" as never, run: () => undefined }); // a number as a text
    },
    says: 'attempts "3" is not a whole number from 1 to 1000000',
  },
  "params that no JSON holds": {
    async make(book) {
      await book.jobs.enqueue(tell, { at: new Date() }); // params that no JSON holds
    },
    says: "params.at is a Date, which JSON cannot carry; pass date.toISOString()",
  },
  "params that are not awaited": {
    async make(book) {
      await book.jobs.enqueue(tell, Promise.resolve({}) as never); // params that are not awaited
    },
    says: "params is a Promise, which JSON cannot carry; await it first",
  },
  "a schema of no library": {
    async make() {
      job("other", { params: { order: "string" } as never, run: () => undefined }); // a schema of no library
    },
    says: 'the params of job "other" are no schema: give a Standard Schema (zod, valibot, arktype …)',
  },
  "two jobs of one name": {
    async make() {
      await open(":memory:", { use: [pay, job("pay", { run: () => undefined })] }); // two jobs of one name
    },
    says: 'two jobs in "use" are named "pay": rename one',
  },
  "a definition that is undefined": {
    async make() {
      await open(":memory:", { use: [undefined as never] }); // a definition that is undefined
    },
    says: "use[0] is undefined, which is no definition: look for a misspelt export, or for files that import each other",
  },
  "a folder that is not there": {
    async make() {
      await open("/not-there/shop.db"); // a folder that is not there
    },
    says: "the folder /not-there does not exist: create it first",
  },
  "a url without its scheme": {
    async make(book) {
      await book.calls.submit({ method: "POST", url: "stock.example/reserve" }); // a url without its scheme
    },
    says: "the url cannot be read: write it in full, such as https://api.example.com/orders",
  },
  "a missing value in a statement": {
    make: (book) =>
      book.write(async (tx) => {
        await tx.sql`select ${undefined as never} as one`; // a missing value in a statement
      }),
    says: "undefined was given to SQL: use null for a missing value",
  },
  "a statement in brackets": {
    make: (book) =>
      book.write(async (tx) => {
        await tx.sql("select 1" as never); // a statement in brackets
      }),
    says: "tx.sql is used as a template, without brackets: tx.sql`select … where id = ${id}`",
  },
  "a write inside write": {
    make: (book) =>
      book.write(async () => {
        await book.write((tx) => tx.sql`select 1 as one`); // a write inside write
      }),
    says: "book.write was called inside book.write: use the tx that your function was given instead",
  },
  "a book that is closed": {
    async make(book) {
      await book.close();
      await book.jobs.enqueue(pay, { order: "1" }); // a book that is closed
    },
    says: "book.jobs.enqueue was called after book.close(): open the book again",
  },
};

const file = fileURLToPath(import.meta.url);
const lines = readFileSync(file, "utf8").split("\n");

for (const backend of backends) {
  describe(backend, () => {
    for (const [name, { make, says }] of Object.entries(mistakes)) {
      test(`${name}: the error says what was wrong, what to do, and where`, async (t) => {
        const { book } = await openTest(t, backend, { use: [pay, tell, Note] });
        const line = lines.findIndex((each) => each.endsWith(`// ${name}`)) + 1;

        const error = await make(book).then(
          () => assert.fail("nothing was refused"),
          (failure: unknown) => failure as Error,
        );

        const place = /(?:file:\/\/)?\/\S*mistakes\.test\.ts:(\d+):\d+/g;
        const [where] = (error.stack ?? "").slice(error.message.length).matchAll(place);
        assert.equal(where?.[1], String(line), String(error.stack));
        const shown = error.message.replaceAll(place, "HERE").replace(/[^ ]+(?:test\.db|:\d+\/\w+)(?=\))/, "BOOK");
        assert.equal(shown, typeof says === "string" ? says : says[backend]);
      });
    }
  });
}
