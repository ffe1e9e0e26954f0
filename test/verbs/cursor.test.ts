import assert from "node:assert/strict";
import { test } from "node:test";
import { jobs } from "../../src/verbs/work/jobs.ts";
import type { Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const call = { signal: AbortSignal.timeout(60_000), tenant: null, progress: () => undefined };

async function next(book: Book, input: Parameters<typeof jobs.list.run>[1]): Promise<string> {
  return (await jobs.list.run(book, input, call)).next ?? assert.fail("there is no next page");
}

for (const backend of backends) {
  test(`${backend}: a cursor goes on where its page ended, whatever the size of the next`, async (t) => {
    const { book } = await openTest(t, backend, { worker: false });
    const made = await book.jobs.enqueueMany("a", [{}, {}, {}]);

    const after = await next(book, { name: "a", limit: 1 });
    const page = await jobs.list.run(book, { name: "a", limit: 5, after }, call);

    assert.deepEqual(
      page.items.map(({ id }) => id),
      made
        .map(({ id }) => id)
        .toReversed()
        .slice(1),
    );
    assert.equal(page.next, null);
  });

  test(`${backend}: a cursor is refused for another question, another tenant, and when it was edited`, async (t) => {
    const { book } = await openTest(t, backend, { worker: false });
    await book.jobs.enqueueMany("a", [{}, {}]);
    await book.tenant("acme").jobs.enqueueMany("a", [{}, {}]);
    const after = await next(book, { limit: 1 });
    const ask = (of: Book, input: Parameters<typeof jobs.list.run>[1]): Promise<unknown> =>
      jobs.list.run(of, input, call);

    await assert.rejects(ask(book, { name: "a", after }), /belongs to another list/);
    await assert.rejects(ask(book, { status: ["queued"], after }), /belongs to another list/);
    await assert.rejects(ask(book.tenant("acme"), { after }), /belongs to another list/);
    for (const given of ["1", "1e3", "0x10", "-1", "yesterday", `${after}A`, after.slice(0, -1), edited(after)]) {
      await assert.rejects(ask(book, { after: given }), /is not a cursor: give "next" of the page before/, given);
    }
  });
}

/** The same cursor with another position in it. */
function edited(cursor: string): string {
  const text = Buffer.from(cursor, "base64url").toString();
  return Buffer.from(`${text.slice(0, -1)}${text.endsWith("9") ? "8" : "9"}`).toString("base64url");
}
