// The live stream: what happens, as it happens, and nothing is missed by who comes back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { entity, job } from "../../src/index.ts";
import { backends } from "../support/open-test.ts";
import { openServer, readStream, type Sent } from "../support/open-server.ts";

for (const backend of backends) {
  test(`who comes back 20 times with the last id has missed no job, whichever process made it (${backend})`, async (t) => {
    const { ask, json, another } = await openServer(t, backend);
    const other = await another();
    const made: string[] = [];
    const seen = new Set<string>();
    let last: string | undefined;
    const connect = async (): Promise<Response> =>
      ask("GET", "/stream?topic=job.created", { headers: last === undefined ? {} : { "last-event-id": last } });
    // The first position is that of the beginning of the book.
    last = "j0.r0.e0.d0.c0";

    for (let round = 0; round < 20; round++) {
      const response = await connect();
      const enqueueing = (async () => {
        made.push((await json<{ id: string }>("POST", "/jobs", { body: { name: "ours" } })).id);
        made.push((await other.jobs.enqueue("theirs")).id);
        made.push((await json<{ id: string }>("POST", "/jobs", { body: { name: "ours" } })).id);
      })();
      for await (const { event, id, data } of readStream(response)) {
        assert.equal(event, "job.created");
        last = id ?? last;
        seen.add((data as { id: string }).id);
        // Cut off in the middle of what comes.
        if (seen.size > round * 2) break;
      }
      await enqueueing;
    }
    for await (const { data, id } of readStream(await connect())) {
      last = id ?? last;
      seen.add((data as { id: string }).id);
      if (made.every((each) => seen.has(each))) break;
    }

    assert.equal(made.length, 60);
    assert.deepEqual([...seen].toSorted(), made.toSorted());
  });

  test(`a stream tells of jobs, runs, events and commits of its tenant alone (${backend})`, async (t) => {
    const Order = entity("order", { schema: z.object({ id: z.string(), total: z.number().optional() }), key: "id" });
    const greet = job("greet", { run: () => "hello" });
    const { ask, book } = await openServer(t, backend, { use: [Order, greet] });
    const response = await ask("GET", "/stream");
    const facts = readStream(response);
    await book.tenant("acme").jobs.enqueue("greet");
    const worker = await book.startWorker();

    const { id } = await book.jobs.enqueue(greet);
    await book.events.publish("order.paid", {});
    await book.records.put(Order, { id: "o-1" });
    const told = new Map<string, Sent>();
    for await (const fact of facts) {
      told.set(fact.event, fact);
      if (told.size === 4) break;
    }
    await worker.stop();

    assert.deepEqual([...told.keys()].toSorted(), ["event.published", "job.created", "record.committed", "run.ended"]);
    assert.partialDeepStrictEqual(told.get("run.ended")?.data, { job: id });
  });

  test(`a stream ends soon after its token was revoked (${backend})`, async (t) => {
    const { ask, book } = await openServer(t, backend);
    const { secret: token, id } = await book.tokens.create({ role: "read", tenant: "default" });
    const response = await ask("GET", "/stream", { token });

    await book.tokens.revoke(id);
    const said = await response.text();

    assert.deepEqual(
      Array.from(said.matchAll(/^event: (.*)$/gm), ([, event]) => event),
      ["closed"],
    );
    // Soon: it has not come to the comment by which a stream that goes on shows that it lives.
    assert.doesNotMatch(said, /^: $/m);
  });
}

test("a reader that takes nothing is let go, with where to read on, and the others hear everything", async (t) => {
  const { ask, book } = await openServer(t, "sqlite");
  const idle = await Promise.all(Array.from({ length: 200 }, () => ask("GET", "/stream")));
  const facts = readStream(await ask("GET", "/stream?topic=event.published"));
  const count = 4000;

  const publishing = book.write(async (tx) => {
    for (let index = 0; index < count; index++) await tx.events.publish(`order.paid.${"x".repeat(100)}`, {});
  });
  let heard = 0;
  for await (const { event } of facts) {
    assert.equal(event, "event.published");
    if (++heard === count) break;
  }
  await publishing;

  for (const each of idle.slice(0, 3)) {
    const sent = await Array.fromAsync(readStream(each));
    assert.equal(sent.at(-1)?.event, "slow");
    assert.ok(sent.length < count);
  }
});

test("facts that are read together are written to a reader together, so that many readers cost few writes", async (t) => {
  const { ask, book } = await openServer(t, "sqlite");
  const response = await ask("GET", "/stream?topic=event.published", { headers: { "last-event-id": "e0" } });

  await book.write(async (tx) => {
    for (let index = 0; index < 400; index++) await tx.events.publish("order.paid", {});
  });
  let [chunks, facts] = [0, 0];
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    chunks++;
    facts += chunk.split("event: event.published").length - 1;
    if (facts === 400) break;
  }

  assert.ok(chunks < 20, `${facts} facts came in ${chunks} writes`);
});

test("a stream refuses a topic and a position that it does not know", async (t) => {
  const { ask } = await openServer(t, "sqlite");

  assert.equal((await ask("GET", "/stream?topic=job.create")).status, 400);
  assert.equal((await ask("GET", "/stream", { headers: { "last-event-id": "7" } })).status, 400);
});
