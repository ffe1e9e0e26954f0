// What doctor says of jobs is broken on purpose, one by one: a check that cannot find anything is none.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { examine } from "../../src/book/doctor.ts";
import { askForTurn, reservationsOf, takeDirect, work } from "../jobs/direct.ts";
import { openEngine, type TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("doctor finds a job that was started while its queue was reserved", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const before = await at.jobs.enqueue(work, {});
      await at.claim(1);
      const { id } = await at.jobs.enqueue(work, {});
      await reservationsOf(at).reserve("default");
      await at.clock.advance(60_000);
      assert.deepEqual(await findings(at), []);

      await startByHand(at, id);

      assert.deepEqual(await findings(at), [
        ["J10", "nothing of a queue was started while the queue was reserved", [id]],
      ]);
      assert.equal((await at.jobs.get(before.id)).status, "running");
    });

    test("doctor finds a job that runs beside direct work", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { id } = await at.jobs.enqueue(work, {});
      const turn = await askForTurn(at);
      assert.equal((await takeDirect(at, turn)).jobs.length, 1);
      assert.deepEqual(await findings(at), []);

      await startByHand(at, id);

      assert.deepEqual(await findings(at), [
        ["J10", "nothing else of a queue runs beside direct work that holds it", [id]],
      ]);
    });

    test("doctor finds a job that waits for a reservation that nobody holds", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { jobId } = await askForTurn(at);
      assert.deepEqual(await findings(at), []);

      await at.run(`update daybook_reservation set status = 'released', ended_at = ${at.clock.now()}`);

      assert.deepEqual(await findings(at), [
        ["J15", "a job that waits for its reservation has one that is held", [jobId]],
      ]);
    });

    test("doctor finds two of a row that have their turn at once, and one that waits for nobody", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { id, jobs } = await at.groups.create({ mode: "sequential" }, (group) => {
        for (let n = 0; n < 2; n++) group.add(work);
      });
      const [first, second] = jobs.map((made) => made.id);
      assert.deepEqual(await findings(at), []);

      await at.run(`update daybook_line set status = 'queued', waits_for = null, waits_key = null where ${is(second)}`);
      assert.deepEqual(await findings(at), [
        ["J9", "of a group that runs one after another, one job has its turn", [id]],
      ]);
      const wait = `status = 'waiting', waits_for = 'group', waits_key = '${id}'`;
      await at.run(`update daybook_line set ${wait} where ${is(first, second)}`);
      const [found] = await findings(at);
      assert.deepEqual(found?.slice(0, 2), ["J15", "a job that waits for its group stands behind an open one"]);
      assert.deepEqual(new Set(found?.[2]), new Set([first, second]));
    });

    test("doctor finds a job whose template is another tenant's", async (t) => {
      const at = await openEngine(t, backend, { use: [work] });
      const { id } = await at.jobs.enqueue(work, {});
      const template = (tenant: string): string => `insert into daybook_job_template
        (tenant_id, id, name, job_name, params, created_at, updated_at) values ('${tenant}', 'one', 'one', 'work', '{}', 1, 1)`;
      await at.run(template("acme"));
      await at.run(template("default"));
      await at.run("update daybook_job set template_id = 'one'");
      assert.deepEqual(await findings(at), []);

      await at.run("delete from daybook_job_template where tenant_id = 'default'");

      assert.deepEqual(await findings(at), [
        ["J2", "a job that was made from a template names one of its tenant", [id]],
      ]);
    });
  });
}

async function findings(at: TestEngine): Promise<[string, string, readonly string[]][]> {
  return (await examine(at.store)).map(({ promise, name, found }) => [promise, name, found]);
}

async function startByHand(at: TestEngine, id: string): Promise<void> {
  await at.run(`update daybook_line set status = 'running', run_id = 'by hand', session_seq = ${at.session.seq},
    started_at = ${at.clock.now()} where ${is(id)}`);
}

/** Rows of the line, by the ids of their jobs. */
function is(...ids: readonly (string | undefined)[]): string {
  return `seq in (select seq from daybook_job where id in (${ids.map((id) => `'${id}'`).join(", ")}))`;
}
