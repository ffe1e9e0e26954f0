// Kills a process before each statement of one transaction that writes records, an event, a job and a row of its own, and whose
// records a listener hears of: all of it is there afterwards, or nothing (R1, P1).
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { open } from "../../src/index.ts";
import { startChild } from "./child-process.ts";
import { bookUrl, type Backend } from "./open-test.ts";

/** Every `stride`-th boundary, beginning with `first`. Returns how many were tried. */
export async function killAtStatements(
  t: TestContext,
  backend: Backend,
  { first, stride }: { readonly first: number; readonly stride: number },
): Promise<number> {
  const kept = new Set<string>();
  for (let nth = first, tried = 1; ; nth += stride, tried++) {
    const url = await bookUrl(t, backend);
    const child = startChild(t, "records", [url, String(nth)]);
    const { signal, stderr } = await child.ended;
    const whole = await wholeOrNothing(url);
    kept.add(whole);
    if (child.lines.includes("done")) {
      assert.equal(whole, "whole", "what was acknowledged is there");
      assert.equal(stderr, "");
      assert.ok(kept.has("nothing"), "no kill came early enough to undo anything");
      return tried;
    }
    assert.equal(signal, "SIGKILL", stderr);
  }
}

// Two orders and what connects them in one commit; the event that was published and one of each order that was created;
// the job that was enqueued and a delivery of each of the two that somebody hears.
const whole = {
  daybook_record: 3,
  daybook_record_commit: 1,
  daybook_record_change: 3,
  daybook_event: 3,
  daybook_job: 3,
  own: 1,
};

async function wholeOrNothing(url: string): Promise<string> {
  await using book = await open(url, { worker: false });
  // Of one moment: the server may be about to do what the process asked for last.
  const found = await book.read(async (tx) => {
    const counts: Record<string, number> = {};
    for (const table of Object.keys(whole)) {
      const strings = Object.assign([`select count(*) as n from ${table}`], { raw: [""] });
      counts[table] = Number((await tx.sql<{ n: number }>(strings))[0]?.n);
    }
    return counts;
  });
  if (Object.values(found).every((each) => each === 0)) return "nothing";
  assert.deepEqual(await book.doctor(), []);
  assert.deepEqual(found, whole);
  return "whole";
}
