// Many processes, many jobs that end at once: whoever claims gets what nobody else has.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { open } from "../../src/index.ts";
import { ofOthers } from "./job-kinds.ts";
import { startJobProcess } from "./job-process.ts";
import { assertRecorded, readStory, untilAllEnded, type Story } from "./job-story.ts";
import { cleanup, testFolder, bookUrl, type Backend } from "./open-test.ts";

export async function shareOut(
  t: TestContext,
  backend: Backend,
  size: { processes: number; jobs: number },
): Promise<{ story: Story; byProcess: Map<number, number> }> {
  const url = await bookUrl(t, backend);
  const folder = testFolder(t);
  const book = await open(url, { worker: false });
  cleanup(t, () => book.close());
  // Every process holds one job until all of them do, so that they begin with the rest at the same moment.
  const held = Array.from({ length: size.processes }, () => ({}));
  const rest = Array.from({ length: size.jobs - size.processes }, () => ({}));
  await book.jobs.enqueueMany(ofOthers("held"), held, { priority: 1 });
  await book.jobs.enqueueMany(ofOthers("noop"), rest);
  const children = held.map(() => startJobProcess(t, { url, folder, work: { concurrency: 1 } }));
  await Promise.all(children.map((child) => child.hear("began")));
  for (const child of children) child.tell({ do: "go" });
  await untilAllEnded(book);

  const story = await readStory(book, folder);
  const starts = story.entries.filter(({ deed }) => deed === "start");
  assert.equal(story.jobs.length, size.jobs);
  assert.ok(story.jobs.every((job) => job.status === "completed" && job.attempt === 1 && job.losses === 0));
  assert.ok(story.runs.every((run) => run.status === "success"));
  assert.equal(starts.length, size.jobs);
  assertRecorded(story, new Set());
  assert.deepEqual(await book.doctor(), []);
  const byProcess = new Map<number, number>();
  for (const { pid } of starts) byProcess.set(pid, (byProcess.get(pid) ?? 0) + 1);
  t.diagnostic(`${size.jobs} jobs by ${[...byProcess.values()].join(" + ")}`);
  return { story, byProcess };
}
