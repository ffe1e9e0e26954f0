// Who knows the first design finds its tables in a book, with its columns and words, and its reading statements run.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { manualClock } from "../../src/core/manual-clock.ts";
import { app, type Book } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const executionColumns = [
  ...["id", "session_id", "execution_start_dtme", "duration_ms", "status"],
  ...["error_type", "error_message", "error_traceback"],
];

/** An app whose listener failed once and succeeded once, and whose schedule fired. */
async function openHome(t: TestContext, backend: Backend): Promise<{ book: Book; at: number }> {
  const at = Date.UTC(2026, 0, 1);
  const kitchen = app("kitchen", {
    setup(here) {
      here.on("motion", { name: "lights" }, refuse);
      here.every("1h", { name: "report" }, () => undefined);
    },
  });
  const clock = manualClock({ at });
  const { book } = await openTest(t, backend, { use: [kitchen], clock, views: true });
  book.events.emit("motion", { broken: true });
  book.events.emit("motion", { broken: false });
  const worker = await book.startWorker();
  const [report] = (await book.schedules.list()).items;
  await book.schedules.trigger(report?.name ?? "");
  await worker.idle();
  while ((await book.runs.list()).items.length < 3) await clock.advance(100);
  return { book, at };
}

function refuse(payload: unknown): void {
  if ((payload as { broken: boolean }).broken) throw new TypeError("the lamp is broken");
}

for (const backend of backends) {
  describe(`the views of seed 000 on ${backend}`, () => {
    test("they have its columns", async (t) => {
      const { book } = await openHome(t, backend);
      const [handler, job, session] = await book.read(async (tx) => [
        await tx.sql`select * from handler_invocations limit 1`,
        await tx.sql`select * from job_executions limit 1`,
        await tx.sql`select * from sessions limit 1`,
      ]);
      const has = (rows: readonly object[] | undefined, names: readonly string[]): void => {
        for (const name of names) assert.ok(name in (rows?.[0] ?? {}), name);
      };

      has(handler, [...executionColumns, "listener_id"]);
      has(job, [...executionColumns, "job_id"]);
      has(session, ["id", "started_at", "stopped_at", "last_heartbeat_at", "status", "error_type", "error_message"]);
      has(session, ["error_traceback"]);
    });

    test("its statements read: by listener, by status and time, by time, by session, by schedule", async (t) => {
      const { book, at } = await openHome(t, backend);
      const session = book.sessionId ?? "";

      const read = await book.read(async (tx) => {
        const [listener] = await tx.sql<{ id: string }>`select id from listeners
          where app_key = ${"kitchen"} and instance_index = ${0}`;
        const [schedule] = await tx.sql<{ id: string }>`select id from scheduled_jobs
          where app_key = ${"kitchen"} and instance_index = ${0}`;
        return {
          drill: await tx.sql<{ status: string }>`select * from handler_invocations
            where listener_id = ${listener?.id ?? ""} order by execution_start_dtme desc`,
          errors: await tx.sql<{ error_type: string; error_message: string }>`select * from handler_invocations
            where status = ${"error"} order by execution_start_dtme desc`,
          inTime: await tx.sql`select id from handler_invocations where execution_start_dtme >= ${at}`,
          before: await tx.sql`select id from handler_invocations where execution_start_dtme < ${at}`,
          here: await tx.sql`select id from handler_invocations where session_id = ${session}`,
          elsewhere: await tx.sql`select id from handler_invocations where session_id != ${session}`,
          bySession: await tx.sql<{ n: number }>`select session_id, count(*) as n from handler_invocations
            group by session_id`,
          ofOld: await tx.sql`select id from handler_invocations
            where session_id in (select id from sessions where started_at < ${at})`,
          fires: await tx.sql<{ status: string }>`select * from job_executions
            where job_id = ${schedule?.id ?? ""} order by execution_start_dtme desc`,
          failedFires: await tx.sql`select * from job_executions where status = ${"error"}
            order by execution_start_dtme desc`,
        };
      });

      assert.deepEqual(read.drill.map(({ status }) => status).sort(), ["error", "success"]);
      assert.deepEqual(
        read.errors.map(({ error_type: type, error_message: message }) => [type, message]),
        [["TypeError", "the lamp is broken"]],
      );
      assert.deepEqual([read.inTime.length, read.before.length], [2, 0]);
      assert.deepEqual([read.here.length, read.elsewhere.length, read.ofOld.length], [2, 0, 0]);
      assert.deepEqual(
        read.bySession.map(({ n }) => Number(n)),
        [2],
      );
      assert.deepEqual(
        read.fires.map(({ status }) => status),
        ["success"],
      );
      assert.deepEqual(read.failedFires, []);
    });
  });
}
