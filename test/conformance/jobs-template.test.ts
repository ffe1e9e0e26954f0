import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { job, manualClock, type Book, type UserTx } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const at = Date.UTC(2026, 5, 1);
const mail = job("mail", {
  params: z.object({ to: z.string(), copies: z.number().default(1) }),
  queue: "post",
  priority: 3,
  attempts: 2,
  run: ({ to, copies }) => `${to} × ${copies}`,
});
const failing = job("failing", {
  attempts: 2,
  backoff: ["0s"],
  run: () => {
    throw new Error("no");
  },
});
const greet = job<string>("greet", { run: (name) => name });
const use = [mail, failing, greet];

for (const backend of backends) {
  describe(backend, () => {
    test("a template is kept as it was given, and what it leaves out is null", async (t) => {
      const { book } = await openTest(t, backend, { use, clock: manualClock({ at }) });

      const made = await book.templates.create("letter", { job: mail, params: { copies: 2 } });
      const full = await book.templates.create("all", {
        job: "failing",
        queue: "q",
        priority: -5,
        attempts: 9,
        losses: 0,
        timeout: "1m",
        backoff: { base: "1s" },
      });

      const letter = {
        id: made.id,
        name: "letter",
        job: "mail",
        params: { copies: 2 },
        queue: null,
        priority: null,
        attempts: null,
        backoff: null,
        timeoutMs: null,
        losses: null,
        notify: null,
        createdAt: at,
        updatedAt: at,
        archivedAt: null,
        revision: 1,
      };
      assert.deepEqual(made, letter);
      assert.deepEqual(await book.templates.get("letter"), letter);
      assert.deepEqual(full, {
        ...letter,
        id: full.id,
        name: "all",
        job: "failing",
        params: {},
        queue: "q",
        priority: -5,
        attempts: 9,
        losses: 0,
        timeoutMs: 60_000,
        backoff: { base: "1s" },
      });
    });

    test("a job from a template has its defaults with the overrides over them, and names it", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.templates.create("letter", { job: mail, params: { to: "ada", copies: 2 } });

      const usual = await book.jobs.enqueueFrom("letter");
      const other = await book.write((tx) => tx.jobs.enqueueFrom("letter", { to: "bob", copies: undefined }));
      const plain = await book.jobs.enqueue(mail, { to: "eve" });

      const found = await Promise.all([usual, other, plain].map(({ id }) => book.jobs.get(id)));
      assert.deepEqual(usual, { id: usual.id, name: "mail", status: "queued", created: true });
      assert.deepEqual(
        found.map(({ name, params, template }) => [name, params, template]),
        [
          ["mail", { to: "ada", copies: 2 }, "letter"],
          ["mail", { to: "bob", copies: 2 }, "letter"],
          ["mail", { to: "eve" }, null],
        ],
      );
    });

    test("options win over the template's settings, and these over the definition's", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.templates.create("letter", {
        job: mail,
        params: { to: "ada" },
        priority: 7,
        timeout: "1m",
        losses: 1,
      });

      const { id: usual } = await book.jobs.enqueueFrom("letter");
      const { id: other } = await book.jobs.enqueueFrom("letter", {}, { priority: 9, attempts: 5, tags: ["x"] });

      assert.deepEqual(await settings(book, usual), ["post", 7, 2, 1, 60_000, null]);
      assert.deepEqual(await settings(book, other), ["post", 9, 5, 1, 60_000, '["x"]']);
    });

    test("params that are no object are replaced as a whole", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.templates.create("hello", { job: greet, params: "ada" });

      const made = [await book.jobs.enqueueFrom("hello"), await book.jobs.enqueueFrom("hello", "bob")];

      const params = made.map(async ({ id }) => (await book.jobs.get(id)).params);
      assert.deepEqual(await Promise.all(params), ["ada", "bob"]);
    });

    test("what defaults and overrides give together is checked against the definition", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.templates.create("letter", { job: mail, params: { copies: 2 } });

      const missing = { code: "invalid", message: /params of job "mail" do not fit its schema: to: / };
      await assert.rejects(book.jobs.enqueueFrom("letter"), missing);
      await assert.rejects(
        book.write((tx) => tx.jobs.enqueueFrom("letter", { to: 5 })),
        missing,
      );
      await assert.rejects(book.jobs.enqueueFrom("letter", { to: "ada" }, { prioritty: 5 } as object), {
        code: "invalid",
        message: /unknown option "prioritty" for enqueue of "mail": did you mean "priority"\?/,
      });
      assert.deepEqual((await book.jobs.list()).items, []);
    });

    test("an edit changes what it names, null gives back to the definition, and existing jobs stay", async (t) => {
      const clock = manualClock({ at });
      const { book } = await openTest(t, backend, { use, clock });
      await book.templates.create("letter", { job: mail, params: { to: "ada", copies: 2 }, priority: 7, attempts: 9 });
      const before = await book.jobs.enqueueFrom("letter", {}, { in: "1h" });
      const kept = await book.jobs.get(before.id);
      await clock.advance(5);

      const edited = await book.templates.edit("letter", { params: { to: "bob" }, priority: null, queue: "slow" });
      const after = await book.jobs.enqueueFrom("letter");

      assert.deepEqual(
        [edited.params, edited.priority, edited.queue, edited.attempts, edited.revision, edited.updatedAt - at],
        [{ to: "bob" }, null, "slow", 9, 2, 5],
      );
      assert.deepEqual(await book.jobs.get(before.id), kept);
      const { params, priority, queue, attempts } = await book.jobs.get(after.id);
      assert.deepEqual([params, priority, queue, attempts], [{ to: "bob" }, 3, "slow", 9]);
      await book.templates.edit("letter", { job: failing, params: {} });
      assert.equal((await book.jobs.enqueueFrom("letter")).name, "failing");
      assert.equal((await book.jobs.get(after.id)).name, "mail");
    });

    test("a retry keeps the template and the params it was made with", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.templates.create("again", { job: failing, params: { n: 1 }, attempts: 3 });
      const first = await book.jobs.enqueueFrom("again");
      await book.templates.edit("again", { params: { n: 2 }, attempts: 1 });
      await book.templates.archive("again");

      const worker = await book.startWorker();
      await worker.idle();

      const chain = await book.jobs.chain(first.id);
      assert.deepEqual(
        chain.map(({ params, template, status }) => [params, template, status]),
        Array.from({ length: 3 }, () => [{ n: 1 }, "again", "failed"]),
      );
    });

    test("an archived template makes no new jobs and says so, until it is restored", async (t) => {
      const clock = manualClock({ at });
      const { book } = await openTest(t, backend, { use, clock });
      await book.templates.create("letter", { job: mail, params: { to: "ada" } });
      const made = await book.jobs.enqueueFrom("letter");
      const archived = await book.templates.archive("letter");
      await clock.advance(1000);

      const again = await book.templates.archive("letter");

      assert.deepEqual([archived.archivedAt, again], [at, archived]);
      const refused = {
        code: "conflict",
        message:
          'template "letter" makes no new jobs, it was archived at 2026-06-01T00:00:00.000Z: ' +
          'bring it back with templates.restore("letter"), or use another',
        details: { template: "letter", archivedAt: at },
      };
      await assert.rejects(book.jobs.enqueueFrom("letter"), refused);
      await assert.rejects(
        book.write((tx) => tx.jobs.enqueueFrom("letter")),
        refused,
      );
      assert.equal((await book.jobs.get(made.id)).status, "queued");
      await assert.rejects(book.templates.create("letter", { job: mail }), {
        code: "conflict",
        message:
          'there is a template "letter" already: restore it (it was archived at 2026-06-01T00:00:00.000Z) and edit it',
      });
      assert.equal((await book.templates.restore("letter")).archivedAt, null);
      assert.ok((await book.jobs.enqueueFrom("letter")).created);
    });

    test("what happens to a template in a transaction happens with it, and is seen in it", async (t) => {
      const { book } = await openTest(t, backend, { use });

      const id = await book.write(async (tx) => {
        await tx.templates.create("letter", { job: mail, params: { to: "ada" } });
        const made = await tx.jobs.enqueueFrom("letter");
        await tx.templates.edit("letter", { params: { to: "bob" } });
        await tx.templates.archive("letter");
        return made.id;
      });
      const undone = book.write(async (tx) => {
        await tx.templates.restore("letter");
        await tx.jobs.enqueueFrom("letter");
        throw new Error("no");
      });

      await assert.rejects(undone, { message: "no" });
      assert.deepEqual((await book.jobs.get(id)).params, { to: "ada" });
      const { params, archivedAt } = await book.templates.get("letter");
      assert.deepEqual([params, archivedAt !== null], [{ to: "bob" }, true]);
      assert.equal((await book.jobs.list()).items.length, 1);
      await assert.rejects(
        book.write(() => book.templates.get("letter")),
        { code: "invalid", message: /book.templates.get was called inside book.write/ },
      );
    });

    test("an edit while the params are checked is noticed: the job has what the template says when it is made", async (t) => {
      const { slow, asked, checked } = slowlyChecked();
      const { book } = await openTest(t, backend, { use: [slow] });
      await book.templates.create("one", { job: slow, params: { n: 1 } });

      const made = book.jobs.enqueueFrom("one");
      await asked.promise;
      await book.templates.edit("one", { params: { n: 2 } });
      checked.resolve();

      assert.deepEqual((await book.jobs.get((await made).id)).params, { n: 2 });
    });

    test("an archive while the params are checked refuses the job", async (t) => {
      const { slow, asked, checked } = slowlyChecked();
      const { book } = await openTest(t, backend, { use: [slow] });
      await book.templates.create("one", { job: slow, params: { n: 1 } });

      const made = book.jobs.enqueueFrom("one");
      await asked.promise;
      await book.templates.archive("one");
      checked.resolve();

      await assert.rejects(made, { code: "conflict", message: /template "one" makes no new jobs/ });
      assert.deepEqual((await book.jobs.list()).items, []);
    });

    test("a key that is taken keeps its job, and replacing what it does also replaces where that came from", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.templates.create("letter", { job: mail, params: { to: "ada" } });
      const first = await book.jobs.enqueue(mail, { to: "eve" }, { key: "k", in: "1h" });

      const kept = await book.jobs.enqueueFrom("letter", {}, { key: "k" });
      const before = await book.jobs.get(first.id);
      const replaced = await book.jobs.enqueueFrom("letter", {}, { key: "k", onConflict: "replace" });

      assert.deepEqual([kept.id, kept.created, before.template], [first.id, false, null]);
      const { params, template } = await book.jobs.get(replaced.id);
      assert.deepEqual([replaced.id, params, template], [first.id, { to: "ada" }, "letter"]);
    });

    test("two tenants have templates of the same name and do not see each other's", async (t) => {
      const { book } = await openTest(t, backend, { use });
      const [acme, bolt] = [book.tenant("acme"), book.tenant("bolt")];
      await acme.templates.create("letter", { job: mail, params: { to: "ada" } });
      const missing = { code: "not_found", message: 'there is no template "letter"' };

      await assert.rejects(bolt.templates.get("letter"), missing);
      await assert.rejects(bolt.jobs.enqueueFrom("letter"), missing);
      await assert.rejects(bolt.templates.edit("letter", { priority: 1 }), missing);
      await assert.rejects(bolt.templates.archive("letter"), missing);
      await assert.rejects(
        bolt.write((tx) => tx.templates.restore("letter")),
        missing,
      );
      assert.deepEqual((await bolt.templates.list()).items, []);
      await bolt.templates.create("letter", { job: mail, params: { to: "bob" } });
      await bolt.templates.archive("letter");

      const made = await acme.jobs.enqueueFrom("letter");

      assert.deepEqual((await acme.jobs.get(made.id)).params, { to: "ada" });
      assert.deepEqual((await bolt.jobs.list()).items, []);
      assert.equal((await acme.templates.get("letter")).revision, 1);
      assert.deepEqual(await book.doctor(), []);
    });

    test("templates are listed page by page, the newest first, by whether they are archived", async (t) => {
      const { book } = await openTest(t, backend, { use });
      for (const name of ["a", "b", "c"]) await book.templates.create(name, { job: mail });
      await book.templates.archive("b");
      const names = async (filter: Parameters<Book["templates"]["list"]>[0]): Promise<string[]> =>
        (await book.templates.list(filter)).items.map(({ name }) => name);

      assert.deepEqual(await names({}), ["c", "b", "a"]);
      assert.deepEqual(await names({ archived: false }), ["c", "a"]);
      assert.deepEqual(await names({ archived: true }), ["b"]);
      const first = await book.templates.list({ limit: 2 });
      const second = await book.templates.list({ limit: 2, after: first.next ?? "" });
      assert.deepEqual([second.items.map(({ name }) => name), second.next], [["a"], null]);
      const wrong: [object, RegExp][] = [
        [{ limit: 0 }, /limit 0 is not a whole number from 1 to 500/],
        [{ after: "x" }, /"x" is not a cursor/],
        [{ archived: "yes" }, /archived is "yes": give true, false, or leave it out/],
        [{ archive: true }, /unknown option "archive" for the list of templates: did you mean "archived"\?/],
      ];
      for (const [filter, message] of wrong) {
        await assert.rejects(book.templates.list(filter), { code: "invalid", message });
      }
    });

    test("bad templates are refused with the value and what to do", async (t) => {
      const { book } = await openTest(t, backend, { use });
      await book.templates.create("letter", { job: mail });
      const wrong: [object, RegExp][] = [
        [{ job: "mial" }, /this book does not know the job "mial": did you mean "mail"\?/],
        [{ job: 5 }, /job is 5: give a definition made with job\(\), or its name/],
        [{}, /job is undefined: give a definition/],
        [{ job: mail, attemps: 3 }, /unknown option "attemps" for template "x": did you mean "attempts"\?/],
        [{ job: mail, attempts: 0 }, /attempts 0 is not a whole number from 1/],
        [{ job: mail, priority: 1001 }, /priority 1001 is not a whole number/],
        [{ job: mail, timeout: "soon" }, /timeout is "soon", which is not a duration/],
        [{ job: mail, losses: -1 }, /losses -1 is not/],
        [{ job: mail, queue: "" }, /queue "" is empty/],
        [{ job: mail, backoff: { bass: 1 } }, /unknown option "bass" for backoff/],
        [{ job: mail, params: { at: new Date(0) } }, /params.at /],
        [{ job: mail, params: null }, /params is null: leave it out/],
      ];

      for (const [options, message] of wrong) {
        await assert.rejects(book.templates.create("x", options as never), { code: "invalid", message });
      }
      await assert.rejects(book.templates.create("", { job: mail }), {
        code: "invalid",
        message: /template name "" is/,
      });
      await assert.rejects(book.templates.edit("letter", {}), {
        code: "invalid",
        message: /nothing to change in template "letter": give one of job, params, queue/,
      });
      await assert.rejects(book.templates.create("letter", { job: mail }), {
        code: "conflict",
        message: 'there is a template "letter" already: edit it, or choose another name',
      });
      await assert.rejects(book.jobs.enqueueFrom("leter"), {
        code: "not_found",
        message: 'there is no template "leter": did you mean "letter"?',
        details: { template: "leter", meant: "letter" },
      });
      assert.equal((await book.templates.list()).items.length, 1);
    });

    test("a book that runs nothing makes templates and jobs of names it does not know, unchecked", async (t) => {
      const { book } = await openTest(t, backend, { worker: false });

      await book.templates.create("far", { job: "elsewhere", params: { any: "thing" }, queue: "q" });
      const made = await book.jobs.enqueueFrom("far", { more: 1 });

      const { name, params, queue } = await book.jobs.get(made.id);
      assert.deepEqual([name, params, queue], ["elsewhere", { any: "thing", more: 1 }, "q"]);
    });
  });
}

/** A job whose params are checked until the test says so. */
function slowlyChecked() {
  const [asked, checked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const params = z.object({ n: z.number() }).refine(async () => {
    asked.resolve();
    await checked.promise;
    return true;
  });
  return { slow: job("slow", { params, run: () => undefined }), asked, checked };
}

// What follows is checked by the compiler: a line that should not compile says so.
async function typesOf(book: Book, tx: UserTx): Promise<void> {
  await book.templates.create("a", { job: mail });
  await tx.templates.create("a", { job: mail, params: { copies: 2 }, backoff: ["1s"] });
  await tx.templates.create("a", { job: "by-name", params: { any: ["thing"] } });
  await book.templates.edit("a", { job: mail, params: { to: "ada" }, queue: null });
  await book.templates.edit("a", { params: { any: 1 }, timeout: null });
  // @ts-expect-error -- copies is a number
  await book.templates.create("a", { job: mail, params: { copies: "2" } });
  // @ts-expect-error -- there is no such param
  await tx.templates.create("a", { job: mail, params: { form: "bob" } });
  // @ts-expect-error -- a template is of a job
  await book.templates.create("a", { params: {} });
  // @ts-expect-error -- there is no such setting
  await book.templates.create("a", { job: mail, attemps: 3 });
  // @ts-expect-error -- to is a text
  await tx.templates.edit("a", { job: mail, params: { to: 5 } });
}

test("the defaults of a template are typed by its definition", () => {
  assert.equal(typeof typesOf, "function");
});

async function settings(book: Book, id: string): Promise<unknown[]> {
  const [row] = await book.read(
    (tx) => tx.sql`select queue, priority, attempts, losses_max, timeout_ms, tags
      from daybook_job_now job join daybook_lane lane on lane.seq = job.lane_seq where id = ${id}`,
  );
  return Object.values(row ?? {});
}
