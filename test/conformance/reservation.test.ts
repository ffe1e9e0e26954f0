import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { reservationVerbs, type Reservations } from "../../src/jobs/direct/reservation.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import type { SessionKey } from "../../src/telemetry/session.ts";
import { askForTurn, takeDirect } from "../jobs/direct.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends, openTest } from "../support/open-test.ts";

const work = job("work", { run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    const of = (at: TestEngine, session: SessionKey = at.session, tenant = "default"): Reservations =>
      reservationVerbs({ ...at.engine, session: () => session }, (unit) => at.store.write(unit, { tenant }), tenant);

    test("nothing of a reserved queue starts, what runs goes on, and its order is untouched", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const made = await at.jobs.enqueueMany(work, [{}, {}, {}]);
      const [first] = await at.claim(1);
      const { id, expiresAt } = await of(at).reserve("default", { note: "by hand" });

      assert.equal(expiresAt, at.clock.now() + 600_000);
      assert.deepEqual(await at.claim(5), []);
      assert.ok(first !== undefined);
      await at.end(first, { status: "success" });
      assert.deepEqual(await at.claim(5), []);
      const [held] = await of(at).list();
      assert.deepEqual(
        [held?.id, held?.queue, held?.status, held?.note, held?.sessionId],
        [id, "default", "active", "by hand", at.session.id],
      );

      await of(at).release(id);
      const next = await at.claim(5);
      assert.deepEqual(
        next.map((each) => each.id),
        made.slice(1).map((each) => each.id),
      );
      assert.deepEqual(await of(at).list(), []);
      assert.deepEqual(
        (await of(at).list({ all: true })).map(({ status }) => status),
        ["released"],
      );
    });

    test("of twenty who reserve at once one is granted, and another queue or tenant is not held", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const asked = await Promise.allSettled(Array.from({ length: 20 }, () => of(at).reserve("default")));

      const refused = asked.flatMap((each) => (each.status === "rejected" ? [each.reason as Error] : []));
      assert.equal(refused.length, 19);
      for (const error of refused) assert.match(error.message, /queue "default" is reserved by session .* until/);
      await of(at).reserve("other");
      await of(at, at.session, "elsewhere").reserve("default");
      assert.equal((await of(at).list()).length, 2);
      const other = await at.tenant("third").jobs.enqueue(work, {});
      assert.deepEqual(
        (await at.claim(5)).map(({ id }) => id),
        [other.id],
      );
    });

    test("it lasts ten minutes unless its owner, and nobody else, renews it", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      await at.jobs.enqueue(work, {});
      const mine = of(at);
      const theirs = of(at, await at.newSession());
      const { id } = await mine.reserve("default");
      await at.clock.advance(599_999);
      await mine.renew(id);
      await at.clock.advance(599_999);

      assert.deepEqual(await at.claim(5), []);
      await assert.rejects(theirs.renew(id), {
        code: "conflict",
        message: /another session's: only its owner may renew/,
      });
      await assert.rejects(theirs.release(id), { code: "conflict", message: /only its owner may release/ });
      await assert.rejects(theirs.reserve("default"), { code: "conflict" });
      await at.clock.advance(1);
      assert.equal((await at.claim(5)).length, 1);
      await assert.rejects(mine.renew(id), { code: "conflict", message: /is expired: reserve again/ });
      await theirs.reserve("default");
      assert.deepEqual(
        (await mine.list({ all: true })).map(({ status }) => status),
        ["active", "expired"],
      );
      await assert.rejects(of(at, at.session, "elsewhere").release(id), { code: "not_found" });
    });

    test("the end of its owner frees it, found once", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      await at.jobs.enqueue(work, {});
      const owner = await at.newSession();
      await of(at, owner).reserve("default");
      await at.run(
        `update daybook_session set status = 'unknown', stopped_at = last_heartbeat_at where seq = ${owner.seq}`,
      );

      assert.deepEqual([await sweep(at.engine), await sweep(at.engine)], [1, 0]);
      assert.equal((await at.claim(5)).length, 1);
    });

    test("one that nobody renewed is found expired, once, and direct work that waits for it never runs", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { jobId } = await askForTurn(at);
      await at.clock.advance(599_999);
      assert.equal(await sweep(at.engine), 0);
      await at.clock.advance(1);

      assert.deepEqual([await sweep(at.engine), await sweep(at.engine)], [1, 0]);

      assert.deepEqual(
        (await of(at).list({ all: true })).map(({ status }) => status),
        ["expired"],
      );
      assert.equal((await at.jobs.get(jobId)).status, "cancelled");
    });

    test("direct work whose process shuts down is cancelled, and its turn is over", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const turn = await askForTurn(at);
      const [taken] = (await takeDirect(at, turn)).jobs;
      assert.equal(taken?.id, turn.jobId);

      await at.end(taken, { status: "cancelled", shutdown: true });

      const { status, retriedBy } = await at.jobs.get(turn.jobId);
      assert.deepEqual([status, retriedBy], ["cancelled", null]);
      assert.deepEqual(await of(at).list(), []);
    });

    test("a book that is closed holds no queue", async (t) => {
      const clock = manualClock();
      const { book, url } = await openTest(t, backend, { use: [work], clock });
      await book.reservations.reserve("default");
      await book.close();
      const { book: later } = await openTest(t, backend, { url, use: [work] });
      assert.deepEqual(
        (await later.reservations.list({ all: true })).map(({ status }) => status),
        ["expired"],
      );
      await assert.rejects(later.reservations.reserve(""), { code: "invalid" });
      await assert.rejects(later.reservations.reserve("q", { nota: "x" } as never), /did you mean "note"\?/);
    });
  });
}
