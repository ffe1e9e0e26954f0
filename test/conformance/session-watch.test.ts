// How sessions judge each other: one that lives is never taken for dead, and one that died is found.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manualClock } from "../../src/index.ts";
import { sql } from "../../src/storage/sql.ts";
import { attach } from "../../src/telemetry/attach.ts";
import type { SessionRow } from "../../src/telemetry/session.ts";
import { type Backend, backends, cleanup, openTest, openTestStore } from "../support/open-test.ts";
import { startProcess } from "../support/session-process.ts";
import {
  clockThatSleeps,
  moveElsewhere,
  observe,
  openBeside,
  readSession,
  until,
  untilBeat,
  whileTimePasses,
} from "../support/session-row.ts";

const day = 86_400_000;

describe("sessions that watch each other", { concurrency: true, timeout: 90_000 }, () => {
  for (const backend of backends) describe(`on ${backend}`, { concurrency: true }, () => onBackend(backend));
});

function onBackend(backend: Backend): void {
  test("a live process is left alone, however often others look and however long they wait", async (t) => {
    const { book: desk, url } = await openTest(t, backend, { attach: false });
    const clock = manualClock();
    const observer = await openBeside(t, backend, { url, clock });
    const other = await startProcess(t, { url });

    for (let count = 0; count < 20; count++) {
      assert.deepEqual(await whileTimePasses(clock, observer.sessions.look()), []);
    }
    await moveElsewhere(desk, other.sessionId);
    for (const step of [day, -2 * day]) {
      await observe(observer, clock, 4);
      clock.step(step);
      const { beat } = await readSession(desk, other.sessionId);
      await untilBeat(desk, other.sessionId, beat);
    }
    await observe(observer, clock, 1);

    assert.equal((await readSession(desk, other.sessionId)).status, "running");
  });

  test("a session that beats now and then outlives any number of times to live", async (t) => {
    const { book: desk, url } = await openTest(t, backend, { attach: false });
    const [clock, theirs] = [manualClock(), manualClock()];
    const observer = await openBeside(t, backend, { url, clock });
    const book = await openBeside(t, backend, { url, clock: theirs });
    await moveElsewhere(desk, book.sessionId);

    for (let round = 0; round < 6; round++) {
      await observe(observer, clock, 5);
      const { beat, status } = await readSession(desk, book.sessionId);
      assert.equal(status, "running");
      theirs.step(round % 2 === 0 ? day : -day);
      await whileTimePasses(theirs, untilBeat(desk, book.sessionId, beat), 100);
    }
  });

  test("a killed process is unknown at once, stopped at its last heartbeat", async (t) => {
    const { store, url } = await openTestStore(t, backend);
    const { watch, detach } = await attach(store, { metadata: "{}" });
    cleanup(t, detach);
    watch.stop(); // so that this test is the only one who looks
    const other = await startProcess(t, { url });
    const read = async (): Promise<SessionRow | undefined> =>
      (await store.read<SessionRow>(sql`select * from daybook_session where id = ${other.sessionId}`))[0];
    const alive = await until("it beats", async () => {
      const row = await read();
      return (row?.beat ?? 0) > 0 ? row : undefined;
    });

    await other.kill();
    const ended = await watch.look();

    const row = await read();
    assert.deepEqual([row?.status, row?.stopped_at], ["unknown", row?.last_heartbeat_at]);
    assert.ok((row?.last_heartbeat_at ?? 0) >= alive.last_heartbeat_at);
    assert.deepEqual(ended, [row]);
    assert.deepEqual(await watch.look(), []);
  });

  test("every session looks for dead ones every five seconds, and once when it opens", async (t) => {
    const { book: desk, url } = await openTest(t, backend, { attach: false });
    const clock = manualClock();
    const observer = await openBeside(t, backend, { url, clock });
    const ended = async (id: string): Promise<true | undefined> =>
      (await readSession(desk, id)).status === "unknown" ? true : undefined;

    const first = await startProcess(t, { url });
    await whileTimePasses(clock, observer.sessions.look()); // what it began when it opened the book is over
    await first.kill();
    await clock.advance(5000);
    await whileTimePasses(
      clock,
      until("the look of every five seconds", () => ended(first.sessionId)),
    );
    const second = await startProcess(t, { url });
    await second.kill();
    await openTest(t, backend, { url });
    await until("the look of a process that opens the book", () => ended(second.sessionId));
  });

  test("a silent session whose process is not provably gone is ended after a whole time to live", async (t) => {
    const { book: desk, url } = await openTest(t, backend, { attach: false });
    const clock = manualClock();
    const observer = await openBeside(t, backend, { url, clock });
    const book = await openBeside(t, backend, { url, clock: manualClock() });
    await moveElsewhere(desk, book.sessionId);

    await whileTimePasses(clock, observer.sessions.look());
    await observe(observer, clock, 5);
    const before = await readSession(desk, book.sessionId);
    await observe(observer, clock, 2);
    const after = await readSession(desk, book.sessionId);

    assert.equal(before.status, "running");
    assert.deepEqual([after.status, after.stopped_at], ["unknown", before.last_heartbeat_at]);
  });

  test("the time that the observer's machine slept does not count as silence of others", async (t) => {
    const { url } = await openTest(t, backend, { attach: false });
    const { clock, sleep } = clockThatSleeps();
    const observer = await openBeside(t, backend, { url, clock });
    const book = await openBeside(t, backend, { url, clock: manualClock() });
    await whileTimePasses(clock, observer.sessions.look());

    for (let count = 0; count < 2; count++) {
      await observe(observer, clock, 1);
      sleep(10 * day);
      await whileTimePasses(clock, observer.sessions.look());
    }

    assert.equal((await readSession(observer, book.sessionId)).status, "running");
  });

  test("an observer that could not write its own beat ends no session", async (t) => {
    const clock = manualClock();
    let full = false;
    const fault = (_: string, text: string): void => {
      if (full && text.startsWith("update daybook_session set beat")) throw new Error("the disk is full");
    };
    const { url } = await openTest(t, backend, { attach: false });
    const observer = await openBeside(t, backend, { url, clock, fault });
    const book = await openBeside(t, backend, { url, clock: manualClock() });
    await observe(observer, clock, 1);

    full = true;
    for (let count = 0; count < 12; count++) {
      await clock.advance(5000);
      await whileTimePasses(clock, observer.sessions.look());
    }
    full = false;
    await observe(observer, clock, 1);

    assert.equal((await readSession(observer, book.sessionId)).status, "running");
  });

  test("a session that cannot be ended does not keep others from being ended", async (t) => {
    const { store, url } = await openTestStore(t, backend);
    const broken = await startProcess(t, { url });
    const other = await startProcess(t, { url });
    const seen = new Set<string>();
    const onSilent = (_: unknown, session: SessionRow): void => {
      seen.add(session.id);
      if (session.id === broken.sessionId) throw new Error("what it left behind is broken");
    };
    const attachment = await attach(store, { metadata: "{}", onSilent });
    cleanup(t, () => attachment.detach());
    attachment.watch.stop(); // it might look when only one of them is gone

    await Promise.all([broken.kill(), other.kill()]);
    await assert.rejects(attachment.watch.look(), { message: "what it left behind is broken" });

    assert.deepEqual([...seen], [broken.sessionId, other.sessionId]);
    const rows = await store.read<SessionRow>(sql`select * from daybook_session where status = 'unknown'`);
    assert.deepEqual(
      rows.map(({ id }) => id),
      [other.sessionId],
    );
  });

  test("a process that was stopped for too long finds its session ended and continues with a new one", async (t) => {
    const { book: desk, url } = await openTest(t, backend, { attach: false });
    const clock = manualClock();
    const observer = await openBeside(t, backend, { url, clock });
    const other = await startProcess(t, { url });
    await moveElsewhere(desk, other.sessionId);
    // Right after a beat it holds no lock that would keep everybody waiting.
    const { beat } = await untilBeat(desk, other.sessionId, 0);

    other.signal("SIGSTOP");
    await observe(observer, clock, 8);
    const ended = await readSession(desk, other.sessionId);
    assert.deepEqual([ended.status, ended.stopped_at], ["unknown", ended.last_heartbeat_at]);
    other.signal("SIGCONT");
    const { id, replacement } = await other.hear("lost");

    // It may have beaten once more before the signal reached it.
    assert.ok(ended.beat >= beat);
    assert.equal(id, other.sessionId);
    other.tell({ do: "say" });
    assert.equal((await other.hear("id")).sessionId, replacement);
    assert.equal((await readSession(desk, replacement)).status, "running");
    other.tell({ do: "close" });
    await other.hear("closed");
    assert.equal((await readSession(desk, replacement)).status, "success");
    assert.deepEqual(await readSession(desk, other.sessionId), ended);
  });
}
