// Many moves to one place: the order stays what was asked for, the numbers stay apart, and the rows that each move writes
// stay few.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job } from "../../src/index.ts";
import { moveJob, type MoveTo } from "../../src/jobs/line/edit.ts";
import type { Sql } from "../../src/storage/sql.ts";
import type { Tx } from "../../src/storage/store.ts";
import { backends, type Backend } from "../support/open-test.ts";
import { isProof } from "../support/property.ts";
import { assertInvariants } from "./model.ts";
import { openEngine, type TestEngine } from "./open-engine.ts";

const work = job("work", { run: (_params: { n: number }) => undefined });
const use = [work];

for (const backend of backends) {
  describe(backend, () => {
    // Some hundreds use up the room between two neighbours many times over; `npm run proof` has all of them. PostgreSQL is
    // asked for each move over a socket.
    const total = isProof ? 10_000 : backend === "sqlite" ? 2000 : 300;

    test(`${total} moves of a few jobs between the same two neighbours keep the asked order`, async (t) => {
      const at = await openEngine(t, engineOf(backend), { use });
      const ids = await fill(at, 30);
      const [before, low, high, ...behind] = ids as [string, string, string, ...string[]];
      const movers = behind.splice(0, 7);
      const line = [...movers];
      const moves = Array.from({ length: total }, (_, n) => {
        const [id] = line.splice((n * 5) % line.length, 1) as [string];
        const atEnd = n % 3 === 0;
        if (atEnd) line.push(id);
        else line.unshift(id);
        return { id, to: atEnd ? { before: high } : { after: low } } as const;
      });

      const { most } = await moveAll(at, moves);

      assert.deepEqual(await order(at), [before, low, ...line, high, ...behind]);
      assert.ok(most <= 20, `a move wrote ${most} rows`);
      await assertInvariants(at);
    });

    for (const side of ["before", "after"] as const) {
      test(`${total} jobs that are all put ${side} the same one stand in the asked order, for few rows each`, async (t) => {
        const at = await openEngine(t, engineOf(backend), { use });
        const ids = await fill(at, total + 2000);
        const front = ids.slice(0, 1000);
        const middle = ids.slice(1000, 1000 + total);
        const behind = ids.slice(1000 + total);
        const [pivot = "", ...rest] = behind;
        const to: MoveTo = side === "before" ? { before: pivot } : { after: pivot };

        // Those in the middle stand before the pivot already, so they are sent behind everything first.
        const away = await moveAll(
          at,
          middle.map((id) => ({ id, to: "last" })),
        );
        const { most, mean } = await moveAll(
          at,
          middle.map((id) => ({ id, to })),
        );

        const asked = side === "before" ? [...middle, pivot] : [pivot, ...middle.toReversed()];
        assert.deepEqual(await order(at), [...front, ...asked, ...rest]);
        t.diagnostic(`last: ${away.mean} rows on average, ${away.most} at most; ${side}: ${mean}, ${most}`);
        assert.ok(mean <= 40 && away.mean <= 40, `${mean} and ${away.mean} rows a move`);
        await assertInvariants(at);
      });
    }

    test(`${total} moves to the ends stay behind one another and before what is made later`, async (t) => {
      const at = await openEngine(t, engineOf(backend), { use });
      const line = await fill(at, 5);
      const moves = Array.from({ length: total }, (_, n) => {
        const to = n % 4 === 0 ? "first" : "last";
        const [id] = line.splice(n % 3, 1) as [string];
        if (to === "first") line.unshift(id);
        else line.push(id);
        return { id, to } as const;
      });

      const { most } = await moveAll(at, moves);
      const { id: late } = await at.jobs.enqueue(work, { n: 0 });

      assert.deepEqual(await order(at), [...line, late]);
      assert.ok(most <= 10, `a move wrote ${most} rows`);
      await assertInvariants(at);
    });
  });
}

function engineOf(backend: Backend): Backend | "memory" {
  return backend === "sqlite" ? "memory" : backend;
}

async function fill(at: TestEngine, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 5000) {
    const params = Array.from({ length: Math.min(5000, count - n) }, (_, index) => ({ n: n + index }));
    ids.push(...(await at.jobs.enqueueMany(work, params)).map((each) => each.id));
  }
  return ids;
}

type Move = { readonly id: string; readonly to: MoveTo };

/** Moves in slices of one transaction, which is faster, and counts the rows that were written. */
async function moveAll(at: TestEngine, moves: readonly Move[]): Promise<{ most: number; mean: number }> {
  let [most, sum] = [0, 0];
  for (let from = 0; from < moves.length; from += 500) {
    await at.store.write(async (tx) => {
      for (const { id, to } of moves.slice(from, from + 500)) {
        let rows = 0;
        const counting = watched(tx, (changed) => (rows += changed));
        await moveJob(counting, id, to);
        most = Math.max(most, rows);
        sum += rows;
      }
    });
  }
  return { most, mean: sum / moves.length };
}

/** The transaction, telling how many rows each statement changed. */
function watched(tx: Tx, tell: (changed: number) => void): Tx {
  return new Proxy(tx, {
    get(_, name) {
      const value: unknown = Reflect.get(tx, name);
      if (typeof value !== "function") return value;
      if (name !== "run") return value.bind(tx) as unknown;
      return async (statement: Sql) => {
        const changed = await tx.run(statement);
        tell(changed);
        return changed;
      };
    },
  });
}

async function order(at: TestEngine): Promise<string[]> {
  const rows = await at.rows<{ id: string }>(
    "select id from daybook_job_now where status = 'queued' order by priority desc, position, seq",
  );
  return rows.map((row) => row.id);
}
