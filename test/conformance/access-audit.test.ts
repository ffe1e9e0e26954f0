// The audit: who changed what through a server, when, from where, and how it ended.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, type Book } from "../../src/index.ts";
import type { AuditNote } from "../../src/access/audit.ts";
import { limits } from "../../src/core/limits.ts";
import { everyMinute } from "../../src/open/retain.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { backends, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";
import { until } from "../support/session-row.ts";

const dayMs = 86_400_000;
const caller = { tokenId: "abc", name: "ops", tenant: null, role: "admin", queues: null, names: null } as const;
const entry: AuditNote = {
  caller,
  tenant: "acme",
  verb: "jobs cancel",
  subject: "j-1",
  input: { id: "j-1", reason: "a mistake" },
  from: "127.0.0.1",
  requestId: "r-1",
};

async function inputOf(book: Book, input: unknown): Promise<unknown> {
  await book.access.note({ ...entry, input });
  return (await book.audit.list({ limit: 1 })).items[0]?.input;
}

for (const backend of backends) {
  describe(`the audit on ${backend}`, { concurrency: true }, () => {
    test("a change is noted before it is answered, and how it ended soon after", async (t) => {
      const clock = manualClock();
      const { book, url } = await openTest(t, backend, { clock });
      const { book: other } = await openTest(t, backend, { url, clock });

      const id = await book.access.note(entry);
      const open = (await other.audit.list()).items;
      clock.step("2s");
      book.access.outcome(id, { status: 409, code: "conflict" });
      book.access.outcome(id, { status: 200, code: null });
      const ended = (await book.audit.list()).items;

      const { id: shownId, ...shown } = open[0] ?? { id: "" };
      assert.match(id, new RegExp(`:${shownId}$`));
      assert.deepEqual(shown, {
        at: clock.now() - 2000,
        tenant: "acme",
        by: { name: "ops", tokenId: "abc", role: "admin" },
        verb: "jobs cancel",
        subject: "j-1",
        input: { id: "j-1", reason: "a mistake" },
        from: "127.0.0.1",
        requestId: "r-1",
        outcome: null,
      });
      assert.deepEqual(ended, [{ ...open[0], outcome: { status: 409, code: "conflict", endedAt: clock.now() } }]);
    });

    test("how changes ended is on disk once the book is closed, without anybody asking", async (t) => {
      const { book, url } = await openTest(t, backend);
      const { book: other } = await openTest(t, backend, { url });
      const ids = await Promise.all(
        Array.from({ length: 300 }, (_, n) => book.access.note({ ...entry, subject: `${n}` })),
      );
      for (const [n, id] of ids.entries()) book.access.outcome(id, { status: 200 + n, code: null });

      await book.close();

      const rows = await tamper(
        other,
        (tx) => tx.sql<{ subject: string; status: number }>`select subject, status from daybook_audit`,
      );
      assert.equal(rows.length, 300);
      for (const { subject, status } of rows) assert.equal(status, 200 + Number(subject));
    });

    test("a tenant's handle lists what was done to the tenant, and the whole book all", async (t) => {
      const { book } = await openTest(t, backend);
      for (const tenant of ["a", "b", null, "a"]) await book.access.note({ ...entry, tenant });
      const tenants = async (of: Book): Promise<unknown[]> => (await of.audit.list()).items.map(({ tenant }) => tenant);

      assert.deepEqual(await tenants(book), ["a", null, "b", "a"]);
      assert.deepEqual(await tenants(book.tenant("a")), ["a", "a"]);
      assert.deepEqual(await tenants(book.tenant("default")), []);
    });

    test("it is asked by token, verb, subject and time, a page at a time", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { clock });
      await book.access.note({ ...entry, verb: "old" });
      clock.step("2h");
      await book.access.note({ ...entry, caller: { ...caller, tokenId: null }, verb: "jobs retry" });
      for (const subject of ["1", "2", "3"]) await book.access.note({ ...entry, subject });
      const count = async (filter: Parameters<Book["audit"]["list"]>[0]): Promise<number> =>
        (await book.audit.list(filter)).items.length;

      const first = await book.audit.list({ limit: 3 });
      const second = await book.audit.list({ limit: 3, after: first.next ?? "" });

      assert.deepEqual([...first.items, ...second.items].map(({ verb }) => verb).at(-1), "old");
      assert.equal(second.next, null);
      assert.equal(await count({ token: "abc" }), 4);
      assert.equal(await count({ verb: "jobs retry" }), 1);
      assert.equal(await count({ subject: "2" }), 1);
      assert.equal(await count({ since: "1h" }), 4);
      assert.equal(await count({ since: new Date(clock.now() + 1) }), 0);
      await assert.rejects(book.audit.list({ since: "yesterday" }), { code: "invalid" });
      await assert.rejects(book.audit.list({ verbs: "x" } as never), { code: "invalid", message: /did you mean/ });
    });

    test("what was given is kept without its secrets, and cut", async (t) => {
      const { book } = await openTest(t, backend);
      const hidden = "(hidden)";

      assert.deepEqual(await inputOf(book, { author: "me", keyScope: "open", secret: 1, Token: null, cookies: true }), {
        author: "me",
        keyScope: "open",
        secret: hidden,
        Token: null,
        cookies: true,
      });
      assert.deepEqual(await inputOf(book, { at: "see https://a.b/c?d=e#f now", dsn: "postgres://u:p@h/db" }), {
        at: `see https://a.b/c?${hidden} now`,
        dsn: `postgres://${hidden}@h/db`,
      });
      const large = await inputOf(book, { text: "x".repeat(10_000), many: Array.from({ length: 60 }, (_, n) => n) });
      const { text, many } = large as { text: string; many: unknown[] };
      assert.equal(Buffer.byteLength(text), limits.auditTextBytesMax);
      assert.deepEqual([many.length, many.at(-1)], [limits.auditItemsMax + 1, "… 10 more"]);
      const rest = await inputOf(book, Object.fromEntries(Array.from({ length: 40 }, (_, n) => [n, "y".repeat(400)])));
      assert.ok((rest as { bytes: number }).bytes > limits.auditInputBytesMax);
      let deep: unknown = "bottom";
      for (let depth = 0; depth < 10_000; depth++) deep = { deep };
      assert.ok(!JSON.stringify(await inputOf(book, deep)).includes("bottom"));
      assert.deepEqual(await inputOf(book, { "a\0b": "\ud800", ["__proto__"]: 1 }), {
        "a\ufffdb": "\ufffd",
        ["__proto__"]: 1,
      });
      assert.equal(await inputOf(book, undefined), null);
    });

    test("the note and the change that is begun in the same moment are in one commit", async (t) => {
      const work = job("work", { run: () => undefined });
      const commits: string[][] = [[]];
      const { book } = await openTest(t, backend, {
        use: [work],
        clock: manualClock(),
        fault: (moment, text) => {
          if (moment === "before" && /^\s*commit/i.test(text)) commits.push([]);
          if (moment === "before" && /daybook_(audit|job)\b/.test(text)) commits.at(-1)?.push(text);
        },
      });
      commits.splice(0, commits.length, []);

      await Promise.all([book.access.note(entry), book.jobs.enqueue(work, {})]);

      const [together] = commits.filter((texts) => texts.length > 0);
      assert.ok(together?.some((text) => text.includes("insert into daybook_audit")));
      assert.ok(together?.some((text) => text.includes("insert into daybook_job")));
    });

    test("the audit leaves after 90 days, or when the book's policy says so, and by nobody's hand", async (t) => {
      const clock = manualClock();
      const { book, url } = await openTest(t, backend, { clock });
      await book.access.note(entry);
      await book.access.note({ ...entry, subject: "later" });
      // Retention believes no clock that was just set, so the times are.
      const age = (days: number): Promise<unknown> =>
        tamper(book, (tx) => tx.sql`update daybook_audit set noted_at = noted_at - ${days * dayMs}`);
      await age(1);
      await tamper(
        book,
        (tx) => tx.sql`update daybook_audit set noted_at = noted_at + ${dayMs} where subject = 'later'`,
      );
      const left = async (): Promise<unknown[]> => (await book.audit.list()).items.map(({ subject }) => subject);
      const hour = async (): Promise<void> => {
        await tamper(book, (tx) => tx.sql`update daybook_retention set applied_at = null`);
        const look = everyMinute(roomsOf(book));
        await clock.advance(limits.retainFirstMs);
        await look();
        await until("retention was applied", async () => {
          const [row] = await book.read(
            (tx) => tx.sql<{ at: number | null }>`select applied_at as at from daybook_retention`,
          );
          return row?.at ?? undefined;
        });
      };

      await assert.rejects(book.retain({ audit: "1ms", apply: true } as never), { code: "invalid" });
      await book.retain({ apply: true });
      assert.deepEqual(await left(), ["later", "j-1"]);
      await age(89);
      await hour();
      await until("the first has left", async () => ((await left()).length === 1 ? true : undefined));
      const { book: other } = await openTest(t, backend, { url, clock, retention: { audit: "30d" } });
      await other.close();
      await hour();
      await until("the other has left", async () => ((await left()).length === 0 ? true : undefined));
    });
  });
}
