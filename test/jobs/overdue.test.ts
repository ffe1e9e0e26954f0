// While its session is overdue a worker claims nothing; with the beat that ends that it goes on, whatever its clock does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { job } from "../../src/index.ts";
import { startWorker } from "../../src/jobs/worker/start-worker.ts";
import { startHeartbeat } from "../../src/telemetry/attach.ts";
import { backends, cleanup } from "../support/open-test.ts";
import { clockThatSleeps } from "../support/session-row.ts";
import { openEngine } from "./open-engine.ts";

for (const backend of backends) {
  test(`${backend}: a worker goes on with the beat that its session waited for, though its clock stands still`, async (t) => {
    const ran: string[] = [];
    const note = job("note", { run: (_params, { job: { id } }) => void ran.push(id) });
    const { engine, jobs } = await openEngine(t, backend, { use: [note] });
    let overdue = true;
    let caughtUp = (): void => undefined;
    const worker = await startWorker({
      ...engine,
      overdue: () => overdue,
      onTimely(hear) {
        caughtUp = hear;
        return () => undefined;
      },
    });
    cleanup(t, () => worker.stop());
    const { id } = await jobs.enqueue(note, {});
    const idle = worker.idle();
    // Its turns have found out nothing: it would look again when 200 ms have passed.
    await Promise.all([jobs.get(id), jobs.get(id)]);
    const before = [...ran];

    overdue = false;
    caughtUp();
    await idle;

    assert.deepEqual([before, ran], [[], [id]]);
  });

  test(`${backend}: a heart tells of the beat that came late, and of no other`, async (t) => {
    const { clock, sleep } = clockThatSleeps();
    const { store, session } = await openEngine(t, backend, { clock });
    let told = 0;
    const heart = startHeartbeat(store, session.id, { lost: () => undefined, caughtUp: () => void told++ });
    cleanup(t, () => heart.stop());
    const beat = (): Promise<void> => store.write(() => undefined); // a commit stamps it

    sleep(2000);
    await beat();
    const timely = told;
    sleep(60_000);
    const slept = heart.overdue;
    await beat();

    assert.deepEqual([timely, slept, told, heart.overdue], [0, true, 1, false]);
  });
}
