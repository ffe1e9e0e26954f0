// Slips of somebody who is new here. What the compiler finds stands at the end.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { setupFailed } from "../../src/apps/handler.ts";
import {
  app,
  entity,
  event,
  job,
  listener,
  open,
  schedule,
  where,
  type OpenOptions,
  type SubmitOptions,
} from "../../src/index.ts";
import { backends, openTest, testUrl } from "../support/open-test.ts";

const plain = job("plain", { run: () => undefined });
const mail = job("mail", { params: z.object({ to: z.string() }), run: ({ to }) => to.length });
const Note = entity("note", { schema: z.object({ id: z.string() }), key: "id" });
const Reading = event<{ room: string; celsius: number }>("climate.reading");

for (const backend of backends) {
  describe(backend, () => {
    test("what stands in `use` and is no definition is refused with how to list it, and no book is made", async (t) => {
      const url = await testUrl(t, backend);
      const wrong: [unknown, RegExp][] = [
        [plain, /"use" is one definition, without its list: give a list of definitions/],
        ["plain", /"use" is "plain": give a list/],
        [[plain, undefined], /use\[1\] is undefined.*misspelt export, or for files that import each other/],
        [[[plain, mail]], /use\[0\] is a list.*\.\.\.list/],
        [[{ plain, mail }], /use\[0\] is an object.*\.\.\.Object\.values\(it\)/],
        [[{}], /use\[0\] is an object, which is no definition: give what job\(\)/],
        [[() => undefined], /use\[0\] is a function, which is no definition/],
      ];

      for (const [use, message] of wrong) {
        await assert.rejects(open(url, { use } as OpenOptions), { code: "invalid", message });
      }

      await assert.rejects(open(url, { migrate: false }), { code: "not_found" });
    });

    test("a job, a list of params and a list of queues that are none are refused by name", async (t) => {
      const { book } = await openTest(t, backend, { use: [plain, mail] });
      const nobody = /job is undefined: give a definition made with job\(\), or its name/;

      await assert.rejects(book.jobs.enqueue(undefined as never), { code: "invalid", message: nobody });
      await assert.rejects(book.jobs.enqueue({ name: "plain" } as never), {
        code: "invalid",
        message: /job is an obj/,
      });
      await assert.rejects(book.jobs.enqueueMany(mail, { to: "ada" } as never), {
        code: "invalid",
        message: /the params of many jobs are an object: give a list/,
      });
      await assert.rejects(book.startWorker({ queues: "mail" as never }), {
        code: "invalid",
        message: /queues is "mail": give a list of names, such as \["mail"\]/,
      });
    });

    test("of many jobs or documents, the one that is refused is named by its place", async (t) => {
      const { book } = await openTest(t, backend, { use: [mail, Note] });

      const wrong = [{ to: "ada" }, { to: 5 as never }];

      await assert.rejects(book.jobs.enqueueMany(mail, wrong), (error: { message: string; details: object }) => {
        assert.match(error.message, /^job 1 of the list: params of job "mail" do not fit its schema: to: /);
        assert.partialDeepStrictEqual(error.details, { job: "mail", index: 1 });
        return true;
      });
      assert.deepEqual((await book.jobs.list()).items, []);
      await assert.rejects(book.records.putMany(Note, [{ id: "a" }, { id: 5 as never }]), {
        code: "invalid",
        message: /^document 1 of the list: the document does not fit the schema of "note": id: /,
      });
    });

    test("a setup that fails where nobody asked to be told is a warning of the process", async (t) => {
      const warned = t.mock.method(process, "emitWarning", () => undefined);
      const broken = app("broken", { setup: () => Promise.reject(new RangeError("no bridge")) });
      const watched = app("watched", { onError: () => undefined, setup: () => Promise.reject(new Error("told")) });

      const { book } = await openTest(t, backend, { use: [broken, watched] });
      const stated: string[] = [];
      const forget = setupFailed.subscribe(({ message }) => void stated.push(message));
      await book.apps.reload("broken");
      forget();

      const said = warned.mock.calls.map(({ arguments: [message] }) => String(message));
      assert.equal(said.length, 1);
      assert.match(
        said[0] ?? "",
        /^app "broken", instance 0, could not be set up at \S*first-use\.test\.ts:\d+: RangeError: no bridge$/,
      );
      assert.deepEqual(stated, ["no bridge"]);
    });

    test("rows of one's own tables come back as docs/sql.md says", async (t) => {
      const { book } = await openTest(t, backend);
      const isPostgres = backend === "postgres";
      await book.write(async (tx) => {
        await tx.sql`create table sale (cents bigint not null, paid boolean not null)`;
        for (const cents of [2 ** 40, 5]) await tx.sql`insert into sale (cents, paid) values (${cents}, ${true})`;
      });

      const sold = await book.read(
        (tx) => tx.sql`select count(*) as n, max(cents) as most, sum(cents) as total from sale where paid`,
      );
      const [paid] = await book.read((tx) => tx.sql`select paid from sale limit 1`);
      const list = JSON.stringify([5, 6]);
      const found = await book.read((tx) =>
        isPostgres
          ? tx.sql`select cents from sale where cents::text in (select json_array_elements_text(${list}::json))`
          : tx.sql`select cents from sale where cents in (select value from json_each(${list}))`,
      );
      const changed = await book.write((tx) => tx.sql`update sale set paid = ${false}`);

      const total = isPostgres ? String(2 ** 40 + 5) : 2 ** 40 + 5;
      assert.deepEqual(sold, [{ n: 2, most: 2 ** 40, total }]);
      assert.deepEqual([paid, found, changed], [{ paid: isPostgres ? true : 1 }, [{ cents: 5 }], []]);
      await assert.rejects(
        book.read((tx) => tx.sql`select * from sale where cents in (${[5] as never})`),
        { code: "invalid", message: /lists as JSON text/ },
      );
    });

    test("a write inside a read is refused with the verb to use", async (t) => {
      const { book } = await openTest(t, backend);

      await assert.rejects(
        book.read((tx) => tx.sql`create table note (id integer)`),
        { code: "forbidden", message: /in a read, use book\.write instead/ },
      );
    });
  });
}

test("what a definition is given as its schema, backoff or handler and is none is refused at once", () => {
  const refused = (make: () => unknown, message: RegExp): void =>
    assert.throws(make, { code: "invalid", message }, String(message));

  refused(() => job("a", (() => 1) as never), /job "a" has no run function: job\("a", { run }\)/);
  refused(() => job("a", { params: { to: "string" } as never, run() {} }), /the params of job "a" are no schema: give/);
  refused(() => job("a", { backoff: "5s" as never, run() {} }), /backoff is "5s": give a list of waits, such as/);
  refused(() => job("a", { backoff: null as never, run() {} }), /backoff is null: give a list/);
});

test("a setting of live listeners is refused for a durable one with what makes it live", () => {
  for (const option of ["where", "for", "debounce", "throttle", "once", "immediate", "priority", "mode", "backlog"]) {
    assert.throws(() => listener("a", { on: "a", run() {}, [option]: "5s" }), {
      code: "invalid",
      message: `"${option}" of listener "a" is for those that are live: say live: true, or leave it out`,
      details: { option },
    });
  }
});

// What follows is checked by the compiler: a line that should not compile says so.
function typesOf(): void {
  schedule("a", { every: "5m", job: plain });
  schedule("a", { every: "5m", job: mail, params: { to: "ada" } });
  schedule("a", { every: "5m", job: "mail" });
  schedule("a", { every: "5m", event: Reading, payload: { room: "attic", celsius: 31 } });
  schedule("a", { every: "5m", event: "climate.reading" });
  // @ts-expect-error -- its job needs params
  schedule("a", { every: "5m", job: mail });
  // @ts-expect-error -- to is a text
  schedule("a", { every: "5m", job: mail, params: { to: 5 } });
  // @ts-expect-error -- its event needs a payload
  schedule("a", { every: "5m", event: Reading });
  // @ts-expect-error -- a schedule says when in one way
  schedule("a", { every: "5m", cron: "* * * * *", job: plain });

  const call: SubmitOptions = { url: "https://shop.example", json: { a: 1 } };
  // @ts-expect-error -- a request has one body
  const twoBodies: SubmitOptions = { url: "https://shop.example", json: { a: 1 }, body: "a" };
  assert.notDeepEqual(call, twoBodies);

  const hot = where.above("celsius", 30);
  app("a", {
    setup(home) {
      home.on(Reading, { name: "a", where: hot }, ({ room }) => room.length);
      home.on(Reading, { name: "b", where: [hot, ({ celsius }) => celsius < 40] }, ({ room }) => room.length);
      home.on(Reading, { name: "c", where: hot, run: ({ room }) => room.length });
      home.on("motion.*", { name: "d", where: where.exists("on") }, ({ on }: { on: boolean }) => !on);
      // @ts-expect-error -- there is no such field
      home.on(Reading, { name: "e", where: hot }, ({ rooms }) => rooms);
    },
  });
}

test("schedules and apps are typed by what they fire and hear", () => {
  assert.equal(typeof typesOf, "function");
});
