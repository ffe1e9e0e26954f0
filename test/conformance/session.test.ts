// The life of a session as its owner sees it: one row per process, stamped while it lives, ended once.
import assert from "node:assert/strict";
import { hostname } from "node:os";
import { describe, test } from "node:test";
import { type Book, manualClock, open } from "../../src/index.ts";
import { sql } from "../../src/storage/sql.ts";
import { attach, sessionLost } from "../../src/telemetry/attach.ts";
import {
  beatStatement,
  endSilentSession,
  failStatement,
  startSession,
  stopSession,
  type SessionRow,
} from "../../src/telemetry/session.ts";
import { thisProcess } from "../../src/telemetry/process-identity.ts";
import { backends, openTest, openTestStore, testUrl } from "../support/open-test.ts";
import { startProcess } from "../support/session-process.ts";
import { readSession, until, untilBeat, whileTimePasses } from "../support/session-row.ts";
import { tamper } from "../support/tamper.ts";

for (const backend of backends) {
  describe(`a session on ${backend}`, { concurrency: true }, () => {
    test("a process that opens the book is one row of it", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { clock, metadata: { role: "tester", version: 7 } });

      const row = await readSession(book, book.sessionId);

      const { seq: _seq, ...rest } = row;
      assert.deepEqual(rest, {
        id: book.sessionId,
        host: hostname(),
        host_boot: thisProcess().hostBoot,
        host_namespace: thisProcess().hostNamespace,
        pid: process.pid,
        process_started: thisProcess().processStarted,
        started_at: clock.now(),
        beat: 0,
        last_heartbeat_at: clock.now(),
        stopped_at: null,
        status: "running",
        error_type: null,
        error_message: null,
        error_trace: null,
        metadata: '{"role":"tester","version":7}',
        dropped_runs: 0,
        dropped_logs: 0,
        dropped_events: 0,
        kind: "process",
        tenant_id: null,
        token_id: null,
      });
      assert.deepEqual((await book.sessions.list()).items, [
        {
          id: book.sessionId,
          kind: "process",
          host: hostname(),
          pid: process.pid,
          status: "running",
          startedAt: clock.now(),
          lastHeartbeatAt: clock.now(),
          stoppedAt: null,
          error: null,
          metadata: { role: "tester", version: 7 },
          dropped: { runs: 0, logs: 0, events: 0 },
        },
      ]);
    });

    test("a session beats every second of its clock, and records when", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { clock });

      for (let beat = 0; beat < 5; beat++) {
        await clock.advance(1000);

        const row = await untilBeat(book, book.sessionId, beat);
        assert.equal(row.beat, beat + 1);
        assert.equal(row.last_heartbeat_at - row.started_at, (beat + 1) * 1000);
      }
    });

    test("a closed book leaves a success with the time it stopped", async (t) => {
      const { book: observer, url } = await openTest(t, backend, { attach: false });
      const clock = manualClock();
      const book = await open(url, { clock });
      await clock.advance(700);
      const id = book.sessionId;

      await book.close();
      await book.close();

      const row = await readSession(observer, id);
      assert.equal(row.status, "success");
      assert.equal(row.stopped_at, clock.now());
      assert.equal(row.last_heartbeat_at, clock.now());
    });

    test("await using closes it too, even after an exception", async (t) => {
      const { book: observer, url } = await openTest(t, backend, { attach: false });
      let id: string | null = null;

      const work = async (): Promise<void> => {
        await using book = await open(url);
        id = book.sessionId;
        throw new Error("caught by the caller");
      };
      await assert.rejects(work());

      assert.equal((await readSession(observer, id)).status, "success");
    });

    test("handles of several tenants share one session, and attach: false makes none", async (t) => {
      const { book, url } = await openTest(t, backend);
      const { book: looker } = await openTest(t, backend, { url, attach: false });

      const acme = book.tenant("acme");
      await acme.write((tx) => tx.sql`select 1 as one`);

      assert.equal(acme.sessionId, book.sessionId);
      assert.equal(looker.sessionId, null);
      assert.deepEqual(await looker.sessions.look(), []);
      assert.equal((await looker.sessions.list()).items.length, 1);
    });

    test("a clock that is set forward or back by a day neither stops the beat nor breaks a rule", async (t) => {
      const day = 86_400_000;
      const clock = manualClock();
      const { book: observer, url } = await openTest(t, backend, { attach: false });
      const book = await open(url, { clock });
      const id = book.sessionId;

      for (const step of [day, -day, -day, day]) {
        const { beat } = await readSession(observer, id);
        clock.step(step);
        await clock.advance(1000);
        await untilBeat(observer, id, beat);
      }
      await book.close();

      const row = await readSession(observer, id);
      assert.equal(row.status, "success");
      assert.ok((row.stopped_at ?? 0) >= row.started_at);
      assert.deepEqual(await observer.doctor(), []);
    });

    test("a process whose session others ended continues with a new one, and the old session keeps its end", async (t) => {
      const clock = manualClock();
      const { store } = await openTestStore(t, backend, { clock });
      const heard: unknown[] = [];
      const attachment = await attach(store, { metadata: "{}", onLost: (...keys) => heard.push(keys) });
      const old = attachment.session();
      const lost: unknown[] = [];
      // Other tests of this process lose sessions meanwhile.
      t.after(sessionLost.subscribe((fact) => void (fact.id === old.id && lost.push(fact))));
      const read = async (id: string): Promise<SessionRow | undefined> =>
        (await store.read<SessionRow>(sql`select * from daybook_session where id = ${id}`))[0];

      assert.equal(await store.write((tx) => endSilentSession(tx, { id: old.id, beat: 0 })), true);
      await clock.advance(1000);
      await until("the session is replaced", async () => (attachment.session().id === old.id ? undefined : true));

      assert.deepEqual(lost, [{ id: old.id, replacement: attachment.session().id }]);
      assert.deepEqual(heard, [[old, attachment.session()]]);
      assert.equal((await read(attachment.session().id))?.status, "running");
      assert.equal(attachment.overdue(), false);
      await attachment.detach();
      assert.equal((await read(attachment.session().id))?.status, "success");
      assert.equal((await read(old.id))?.status, "unknown");
    });

    test("a failure to begin the new session is retried and does not end the program", async (t) => {
      const clock = manualClock();
      let full = false;
      let refused = 0;
      const fault = (moment: string, text: string): void => {
        if (!full || moment !== "before" || !text.startsWith("insert into daybook_session")) return;
        refused++;
        throw new Error("no room for a new session");
      };
      const { store } = await openTestStore(t, backend, { clock, fault });
      const attachment = await attach(store, { metadata: "{}" });
      const { id } = attachment.session();
      await store.write((tx) => endSilentSession(tx, { id, beat: 0 }));

      full = true;
      await whileTimePasses(
        clock,
        until("it was refused again", async () => (refused > 3 ? true : undefined)),
        100,
      );
      assert.deepEqual([attachment.session().id, attachment.overdue()], [id, true]);
      full = false;
      await whileTimePasses(
        clock,
        until("the session is replaced", async () => (attachment.session().id === id ? undefined : true)),
        100,
      );

      await attachment.detach();
    });

    test("a book that is closed while it begins a new session leaves none running", async (t) => {
      const clock = manualClock();
      let inserted = 0;
      const fault = (moment: string, text: string): void => {
        if (moment === "after" && text.startsWith("insert into daybook_session")) inserted++;
      };
      const { store } = await openTestStore(t, backend, { clock, fault });
      const attachment = await attach(store, { metadata: "{}" });
      await store.write((tx) => endSilentSession(tx, { id: attachment.session().id, beat: 0 }));

      await whileTimePasses(
        clock,
        (async () => {
          while (inserted < 2) await clock.nextTurn();
          await attachment.detach();
        })(),
        100,
      );

      const rows = await store.read<SessionRow>(sql`select * from daybook_session order by seq`);
      assert.deepEqual(
        rows.map(({ status }) => status),
        ["unknown", "success"],
      );
    });

    test("a book that closes before it notices its lost session does not overwrite how others ended it", async (t) => {
      const { book: observer, url } = await openTest(t, backend, { attach: false });
      const book = await open(url, { clock: manualClock() });
      const id = book.sessionId;
      const { last_heartbeat_at: silentSince } = await readSession(observer, id);

      await tamper(
        observer,
        (tx) => tx.sql`update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at`,
      );
      await book.close();

      const row = await readSession(observer, id);
      assert.deepEqual([row.status, row.stopped_at], ["unknown", silentSince]);
      assert.equal((await observer.sessions.list()).items.length, 1);
    });

    test("an ended session never changes", async (t) => {
      const { store } = await openTestStore(t, backend);
      const error = { type: "Error", message: "first", trace: null };
      const commands = {
        beat: (id: string) => store.write((tx) => tx.run(beatStatement(id, tx.now + 5))),
        stop: (id: string) => store.write((tx) => stopSession(tx, id)),
        fail: (id: string) => store.write((tx) => tx.run(failStatement(id, error, tx.now + 5))),
        end: (id: string) => store.write((tx) => endSilentSession(tx, { id, beat: 0 })),
      };
      const leadsTo = { beat: "running", stop: "success", fail: "error", end: "unknown" } as const;
      const read = async (id: string): Promise<SessionRow | undefined> =>
        (await store.read<SessionRow>(sql`select * from daybook_session where id = ${id}`))[0];

      for (const first of ["stop", "fail", "end"] as const) {
        const { id } = await store.write((tx) => startSession(tx, thisProcess(), "{}"));
        await commands[first](id);
        const ended = await read(id);
        assert.equal(ended?.status, leadsTo[first]);
        for (const second of ["beat", "stop", "fail", "end"] as const) {
          await commands[second](id);
          assert.deepEqual(await read(id), ended, `${second} after ${first}`);
        }
      }
    });

    test("neither a beat nor an end is recorded before the session's start", async (t) => {
      const { store } = await openTestStore(t, backend);
      const error = { type: "Error", message: "first", trace: null };
      const { id } = await store.write((tx) => startSession(tx, thisProcess(), "{}"));

      assert.equal(await store.write((tx) => tx.run(beatStatement(id, tx.now - 86_400_000))), 1);
      assert.equal(await store.write((tx) => tx.run(failStatement(id, error, tx.now - 86_400_000))), 1);

      const [row] = await store.read<SessionRow>(sql`select * from daybook_session`);
      assert.deepEqual([row?.last_heartbeat_at, row?.stopped_at], [row?.started_at, row?.started_at]);
    });

    test("a list gives the newest first, page by page", async (t) => {
      const { book, url } = await openTest(t, backend);
      const ids = [book.sessionId];
      for (let count = 0; count < 4; count++) ids.unshift((await openTest(t, backend, { url })).book.sessionId);

      const first = await book.sessions.list({ limit: 2 });
      const second = await book.sessions.list({ limit: 2, after: first.next ?? "" });
      const third = await book.sessions.list({ limit: 2, after: second.next ?? "" });

      const listed = [first, second, third].flatMap((page) => page.items.map(({ id }) => id));
      assert.deepEqual(listed, ids);
      assert.equal(third.next, null);
      await assert.rejects(book.sessions.list({ limit: 0 }), { code: "invalid" });
      await assert.rejects(book.sessions.list({ after: "x" }), { code: "invalid" });
    });
  });
}

test("a script that never closes its book ends by itself, and others find it gone", async (t) => {
  const { book, url } = await openTest(t, "sqlite");
  const other = await startProcess(t, { url });

  other.tell({ do: "leave" });
  const { code, stderr } = await other.ended;

  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  await book.sessions.look();
  assert.equal((await readSession(book, other.sessionId)).status, "unknown");
});

test("opening a dozen books at once makes Node warn of nothing, and closing them leaves nothing behind", async (t) => {
  const warnings: unknown[] = [];
  const hear = (warning: unknown): void => void warnings.push(warning);
  process.on("warning", hear);
  t.after(() => process.off("warning", hear));

  const url = await testUrl(t, "sqlite");
  const books: Book[] = [];
  for (let count = 0; count < 12; count++) books.push(await open(url));
  for (const book of books) await book.close();

  assert.deepEqual(warnings, []);
  assert.equal(process.listenerCount("uncaughtExceptionMonitor"), 0);
});
