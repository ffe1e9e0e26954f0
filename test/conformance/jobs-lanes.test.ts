// Many lanes of one worker: each job of each of them starts once, and none is forgotten, however warm the worker is.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { lanesOf } from "../../src/jobs/claim/lane.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { sql } from "../../src/storage/sql.ts";
import { backends, openTest } from "../support/open-test.ts";

type Params = { readonly n: number };

const numbers = (count: number): Params[] => Array.from({ length: count }, (_, n) => ({ n }));

for (const backend of backends) {
  describe(backend, () => {
    for (const tenants of [["default"], ["default", "a", "b"]]) {
      test(`each job of busy queues starts once, with ${tenants.length} tenants`, async (t) => {
        const started: string[] = [];
        const count = job("count", {
          run: (_params: Params, { job: { id } }) => void started.push(id),
        });
        const { book } = await openTest(t, backend, { use: [count], clock: manualClock() });
        const made: string[] = [];
        const fill = async (jobs: number): Promise<void> => {
          for (const tenant of tenants) {
            for (const queue of ["x", "y", "z"]) {
              const refs = await book.tenant(tenant).jobs.enqueueMany(count, numbers(jobs), { queue });
              made.push(...refs.map(({ id }) => id));
            }
          }
        };
        await fill(40);
        const worker = await book.startWorker({ concurrency: 4 });
        await worker.idle();
        await fill(3);
        await worker.idle();

        assert.deepEqual(started.toSorted(), made.toSorted());
        await worker.stop();
      });
    }

    test("new tenants that use new queues at the same moment have lanes of their own", async (t) => {
      const { book, url } = await openTest(t, backend);
      const other = await openTest(t, backend, { url });
      const made = Promise.withResolvers<void>();
      const first = roomsOf(book).store.write(async (tx) => {
        await lanesOf(tx, "a", ["queue-0"]);
        made.resolve();
        // On PostgreSQL the other has computed its numbers once it waits for ours.
        for (let look = 0; backend === "postgres" && look < 5000; look++) {
          const [locks] = await tx.all<{ n: number }>(sql`select count(*) as n from pg_locks
            where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`);
          if (locks?.n !== 0) break;
        }
      });
      await made.promise;
      const many = numbers(30).map(({ n }) => `queue-${n}`);
      await Promise.all([first, roomsOf(other.book).store.write((tx) => lanesOf(tx, "b", many))]);

      const lanes = await roomsOf(book).store.readHeavy<{ tenant: string; own: number; lanes: number }>(
        sql`select tenant_id as tenant, seq / 1000000 as own, count(*) as lanes from daybook_lane
          where tenant_id <> 'default' group by tenant_id, seq / 1000000 order by tenant_id, own`,
      );
      assert.deepEqual(
        lanes.map(({ tenant, lanes }) => ({ tenant, lanes })),
        [
          { tenant: "a", lanes: 1 },
          { tenant: "b", lanes: 30 },
        ],
      );
      assert.notEqual(lanes[0]?.own, lanes[1]?.own);
    });

    test("a job in any queue of any tenant is found at once by a worker that served others", async (t) => {
      const started: string[] = [];
      const count = job("count", {
        run: (_params: Params, { job: { id } }) => void started.push(id),
      });
      const { book } = await openTest(t, backend, { use: [count], clock: manualClock() });
      const worker = await book.startWorker({ concurrency: 4 });
      const made: string[] = [];
      const orders = [
        ["a/x", "b/x"],
        ["a/x", "a/x"],
        ["a/y"],
        ["b/y"],
        ["c/x", "a/x"],
        ["a/y", "b/y", "c/y"],
        ["c/z"],
        ["a/z", "a/z", "a/x"],
        ["b/z"],
        ["c/y"],
      ];
      for (const places of orders) {
        for (const place of places) {
          const [tenant = "", queue = ""] = place.split("/");
          const { id } = await book.tenant(tenant).jobs.enqueue(count, { n: 0 }, { queue });
          made.push(id);
        }
        await worker.idle();

        assert.deepEqual(started.toSorted(), made.toSorted(), `after ${places.join(" ")}`);
      }
      await worker.stop();
    });
  });
}
