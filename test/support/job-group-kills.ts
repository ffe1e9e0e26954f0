// Groups whose workers are killed: made, and compared with what they should have become.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { open, type Book, type GroupRecord } from "../../src/index.ts";
import { dies, queueOf, type KillPoint } from "./job-kill-points.ts";
import { jobKinds } from "./job-kinds.ts";
import { openLedger, readLedgers } from "./job-ledger.ts";
import { untilAllEnded } from "./job-story.ts";
import { cleanup, testFolder, bookUrl, type Backend } from "./open-test.ts";

const policies = ["stop", "skip", "continue"] as const;

type Scene = { readonly id: string; readonly queue: string; readonly name: string };

/** What becomes of the last of four jobs when the third has failed for good, and of its run. */
const lastOf = new Map([
  ["stop", { status: "cancelled", runs: [null] }],
  ["skip", { status: "skipped", runs: ["skipped"] }],
  ["continue", { status: "completed", runs: ["success"] }],
]);

/** Kills a worker at each pass of each point, lets another finish the work, and checks that every group ended as it should. */
export async function killGroups(
  t: TestContext,
  backend: Backend,
  passes: Readonly<Record<KillPoint["name"], readonly number[]>>,
): Promise<void> {
  const url = await bookUrl(t, backend);
  const folder = testFolder(t);
  const kinds = jobKinds({
    ledger: openLedger(folder),
    began: () => undefined,
    aborted: () => undefined,
    gate: () => Promise.resolve(),
  });
  const book = await open(url, { use: Object.values(kinds) });
  cleanup(t, () => book.close());
  await book.write((tx) => tx.sql`create table effect (name text, job_id text, pid integer)`);
  const points = Object.entries(passes).flatMap(([name, each]) =>
    each.map((pass) => ({ name: name as KillPoint["name"], pass })),
  );
  const groups = [];
  for (const [index, point] of points.entries()) groups.push(...(await makeGroups(book, kinds, point, index)));

  const left = [...points];
  const reached = new Set<string>();
  const kill = async (): Promise<void> => {
    for (let point = left.shift(); point !== undefined; point = left.shift()) {
      if (await dies(t, { url, folder, point, book })) reached.add(point.name);
    }
  };
  await Promise.all([kill(), kill(), kill()]);
  // How many turns there are depends on what ends together, so a late pass may not come; every point does.
  assert.deepEqual([...reached].toSorted(), Object.keys(passes).toSorted());
  await book.startWorker();
  await untilAllEnded(book);

  for (const group of groups) await assertGroup(book, folder, group);
  assert.deepEqual(await book.doctor(), []);
}

/** Two groups in the queue of the point: of four jobs the first fails once and is retried, the third fails for good. In the
 *  parallel one nobody minds. */
async function makeGroups(
  book: Book,
  { member }: Pick<ReturnType<typeof jobKinds>, "member">,
  point: KillPoint,
  index: number,
): Promise<Scene[]> {
  const queue = queueOf(point);
  const scenes: Scene[] = [];
  for (const mode of ["sequential", "parallel"] as const) {
    const onFailure = mode === "parallel" ? "continue" : (policies[index % policies.length] ?? "stop");
    const name = `${queue}/${mode}`;
    const { id } = await book.groups.create({ mode, onFailure }, (group) => {
      [1, 0, 1, 0].forEach((fails, slot) => {
        group.add(member, { name: `${name}/${slot}`, fails }, { queue, attempts: slot === 0 ? 2 : 1 });
      });
    });
    scenes.push({ id, queue, name });
  }
  return scenes;
}

type Tried = { slot: number; status: string; run_status: string | null; seq: number };

/** The group has its status, each of its members one end, and each effect was left once. */
async function assertGroup(book: Book, folder: string, { id, name }: Scene): Promise<void> {
  const group: GroupRecord = await book.groups.get(id);
  const last = lastOf.get(group.onFailure);
  const ends = ["completed", "completed", "failed", last?.status];
  assert.deepEqual(
    [group.status, (await book.groups.members(id)).map(({ status }) => status)],
    [group.onFailure === "stop" ? "failed" : "partial", ends],
    name,
  );
  const tried = await book.read(
    (tx) => tx.sql<Tried>`select job.group_slot as slot, job.status, run.status as run_status, job.seq
      from daybook_job_now job join daybook_job_group job_group on job_group.seq = job.group_seq left join daybook_run run on run.id = job.run_id
      where job_group.id = ${id} order by job.seq`,
  );
  const expected = [["error", "success"], ["success"], ["error"], last?.runs];
  for (const [slot, runs] of expected.entries()) {
    const ofSlot = tried.filter((each) => each.slot === slot).map((each) => each.run_status);
    // A process that was killed cost a run, and nothing else.
    assert.deepEqual(
      ofSlot.filter((each) => each !== "lost"),
      runs,
      `${name}/${slot}`,
    );
  }
  const effects = await book.read(
    (tx) => tx.sql<{ name: string }>`select name from effect where name like ${`${name}/%`} order by name`,
  );
  assert.deepEqual(
    effects.map((each) => each.name),
    ends.flatMap((end, slot) => (end === "completed" ? [`${name}/${slot}`] : [])),
  );
  if (group.mode === "sequential") {
    const slots = readLedgers(folder).filter(({ key }) => key.startsWith(`${name}/`));
    const order = slots.map(({ key }) => Number(key.slice(name.length + 1)));
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
      `${name}: one after another`,
    );
  }
}
