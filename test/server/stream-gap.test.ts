// The live stream has no gap that is not said: transactions that commit late, a server that starts anew, rows that have left, and readers
// that hear one topic, or read slowly.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import pg from "pg";
import { manualClock, type Book } from "../../src/index.ts";
import { createApp } from "../../src/server/app.ts";
import { backends, cleanup } from "../support/open-test.ts";
import { openServer, origin, readStream, type Sent, type TestServer } from "../support/open-server.ts";
import { tamper } from "../support/tamper.ts";

const columns = `tenant_id, topic, payload, priority, published_at, available_at, chain_depth, deliveries`;

/** Copies of an event, with ids from `late-1` on. */
function copies(count: number, prefix: string): string {
  return `insert into daybook_event (id, root_event_id, ${columns})
    with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})
    select '${prefix}-' || i, '${prefix}-' || i, ${columns} from n, (select * from daybook_event order by seq limit 1) as one`;
}

async function publishMany(book: Book, count: number, prefix: string): Promise<void> {
  await tamper(book, (tx) => tx.sql([copies(count, prefix)] as unknown as TemplateStringsArray));
}

/** A transaction that has published an event, and has not committed. */
async function openLate(t: TestContext, url: string, id: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  await client.query("begin");
  await client.query("set search_path to daybook");
  await client.query(copies(1, id));
  return client;
}

/** Both of its clocks go on with each step: time in which nothing rang. */
function passing(): ReturnType<typeof manualClock> {
  const clock = manualClock({ at: "2026-11-01T00:00:00Z" });
  return { ...clock, monotonic: clock.now };
}

type Heard = { readonly facts: Sent[]; readonly last: string | undefined };

/** What is told until one is as wanted; then the reader leaves. */
async function hearUntil(response: Response, wanted: (sent: Sent) => boolean, turns = 0): Promise<Heard> {
  assert.equal(response.status, 200);
  const facts: Sent[] = [];
  for await (const sent of readStream(response)) {
    facts.push(sent);
    for (let turn = 0; turn < turns; turn++) await setImmediate();
    if (wanted(sent)) break;
  }
  return { facts, last: facts.at(-1)?.id ?? undefined };
}

const isEvent =
  (id: string) =>
  ({ data }: Sent): boolean =>
    (data as { id?: string }).id === id;

/** The id that a stream gives at once, before anything has happened; `leave` ends it. */
async function begin(response: Response): Promise<{ readonly id: string; leave(): Promise<void> }> {
  assert.ok(response.body);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    assert.ok(!done, `there is no id in ${text}`);
    text += value;
    const [, id] = /^id: (.*)\n\n/m.exec(text) ?? [];
    if (id !== undefined) return { id, leave: () => reader.cancel() };
  }
}

async function firstId(response: Response): Promise<string> {
  const { id, leave } = await begin(response);
  await leave();
  return id;
}

function follow({ ask }: Pick<TestServer, "ask">, topic: string, last?: string): Promise<Response> {
  return ask("GET", `/stream?topic=${topic}`, { headers: last === undefined ? {} : { "last-event-id": last } });
}

/** Another server of the same book, which knows nothing of the first one's readers. */
async function anotherServer(t: TestContext, { another, tokens }: TestServer): Promise<Pick<TestServer, "ask">> {
  const app = createApp(await another());
  cleanup(t, () => app.close());
  return {
    ask: (method, path, { headers = {} } = {}) => {
      const all = { authorization: `Bearer ${tokens.operate}`, ...headers };
      return app.fetch(new Request(`${origin}/api/v1${path}`, { method, headers: all }));
    },
  };
}

test("what commits late is told to who listens, to who comes back, and by a server that starts anew", async (t) => {
  const server = await openServer(t, "postgres", { worker: false });
  const { book, url } = server;
  const { id: first } = await book.events.publish("order.paid", {});
  const start = await firstId(await follow(server, "event.published"));
  const standing = await begin(await follow(server, "record.committed", start));
  const [whileHeard, whileAway, whileDown] = [
    await openLate(t, url, "heard"),
    await openLate(t, url, "away"),
    await openLate(t, url, "down"),
  ];
  await publishMany(book, 3000, "other");
  const listening = hearUntil(await follow(server, "event.published", start), isEvent("heard-1"));

  await whileHeard.query("commit");
  const one = await listening;
  await whileAway.query("commit");
  const two = await hearUntil(await follow(server, "event.published", one.last), isEvent("away-1"));
  const anew = await anotherServer(t, server);
  const answer = follow(anew, "event.published", two.last);
  await whileDown.query("commit");
  const three = await hearUntil(await answer, isEvent("down-1"));

  await standing.leave();

  const told = [one, two, three].flatMap(({ facts }) => facts);
  const isNews = ({ event, data }: Sent): boolean =>
    event !== "event.published" || isEvent(first)({ event, data, id: null });
  assert.deepEqual(
    told.filter(isNews),
    [],
    "nothing is missed, so there is no reset, and what was known before is not told",
  );
});

test("what a transaction commits that was under way for long as a server began is said, if it is not told", async (t) => {
  const server = await openServer(t, "postgres", { worker: false });
  const { book, url } = server;
  await book.events.publish("order.paid", {});
  const late = await openLate(t, url, "late");
  await publishMany(book, 10, "other");

  const standing = await begin(await follow(server, "record.committed"));
  const listening = hearUntil(await follow(server, "event.published"), ({ event }) => event === "reset");
  await publishMany(book, 1, "meanwhile");
  await late.query("commit");
  const heard = await listening;
  const back = await hearUntil(await follow(server, "event.published", standing.id), () => true);
  await standing.leave();

  assert.deepEqual(heard.facts.map(({ event }) => event).toSorted(), ["event.published", "reset"]);
  assert.equal(back.facts[0]?.event, "reset");
  const { id } = await book.events.publish("order.paid", {});
  const sure = await hearUntil(await follow(server, "event.published", heard.last), isEvent(id));
  assert.ok(sure.facts.every(({ event }) => event === "event.published"));
});

for (const backend of backends) {
  test(`who hears one topic is not told to read the lists again because of others (${backend})`, async (t) => {
    const server = await openServer(t, backend, { worker: false });
    const { book } = server;
    await book.events.publish("order.paid", {});
    const start = await firstId(await follow(server, "job.created"));
    await publishMany(book, 20_100, "other");
    const { id } = await book.jobs.enqueue("ours");

    const heard = await hearUntil(await follow(server, "job.created", start), () => true);
    const tooMuch = await hearUntil(await follow(server, "event.published", start), () => true);

    assert.deepEqual(
      heard.facts.map(({ data }) => (data as { id: string }).id),
      [id],
    );
    assert.equal(tooMuch.facts[0]?.event, "reset");
  });

  test(`a reader that comes back is told ten thousand facts as fast as it reads, from memory and from the book (${backend})`, async (t) => {
    const server = await openServer(t, backend, { worker: false });
    const { book } = server;
    await book.events.publish("order.paid", {});
    const start = await firstId(await follow(server, "event.published"));
    const listening = hearUntil(await follow(server, "event.published"), isEvent("last-1"));
    await publishMany(book, 9000, "other");
    await publishMany(book, 1, "last");
    await listening;

    const fromMemory = await hearUntil(await follow(server, "event.published", start), isEvent("last-1"), 2);
    const anew = await anotherServer(t, server);
    const fromBook = await hearUntil(await follow(anew, "event.published", start), isEvent("last-1"), 2);

    for (const { facts } of [fromMemory, fromBook]) {
      assert.deepEqual([...new Set(facts.map(({ event }) => event))], ["event.published"]);
      assert.equal(new Set(facts.map(({ data }) => (data as { id: string }).id)).size, 9001);
    }
  });

  test(`who comes back after retention removed what it missed is told so, and otherwise is not (${backend})`, async (t) => {
    const clock = passing();
    const server = await openServer(t, backend, { worker: false, clock, retention: { jobs: "1d" } });
    const { book } = server;
    const before = await firstId(await follow(server, "job.created"));
    const removed = await book.jobs.enqueue("removed");
    await book.jobs.cancel(removed.id);
    const after = (await hearUntil(await follow(server, "job.created", before), isEvent(removed.id))).last ?? "";
    clock.step("2d");
    const kept = await book.jobs.enqueue("kept");
    const caughtUp = await hearUntil(await follow(server, "job.created", after), isEvent(kept.id));
    const last = await firstId(await follow(server, "job.created", caughtUp.last));

    assert.equal((await book.retain({ apply: true })).jobs, 1);
    const missed = await hearUntil(await follow(server, "job.created", before), () => true);
    const next = await book.jobs.enqueue("next");
    const goesOn = await hearUntil(await follow(server, "job.created", last), isEvent(next.id));

    assert.equal(missed.facts[0]?.event, "reset");
    assert.deepEqual(
      goesOn.facts.map(({ data }) => (data as { id: string }).id),
      [next.id],
    );
  });

  test(`a job is heard, or a reset, when retention has removed all jobs, so that numbers begin again (${backend})`, async (t) => {
    const clock = passing();
    const server = await openServer(t, backend, { worker: false, clock, retention: { jobs: "1d" } });
    const { book } = server;
    const start = await firstId(await follow(server, "job.created"));
    for (let index = 0; index < 3; index++) await book.jobs.cancel((await book.jobs.enqueue("old")).id);
    const facts = readStream(await follow(server, "job.created", start));
    await facts.next();
    await facts.next();
    const away = ((await facts.next()).value as Sent).id ?? "";
    clock.step("2d");

    assert.equal((await book.retain({ apply: true })).jobs, 3);
    const { id } = await book.jobs.enqueue("new");
    const heard = (await facts.next()).value as Sent;
    const back = await hearUntil(await follow(server, "job.created", away), () => true);
    await facts.return(undefined);

    for (const { event, data } of [heard, back.facts[0]].map((sent) => sent as Sent)) {
      assert.ok(event === "reset" || (data as { id: string }).id === id, `heard ${event}`);
    }
  });

  test(`who comes to another book with an id is told to read the lists again (${backend})`, async (t) => {
    const one = await openServer(t, backend, { worker: false });
    const { ask, book } = await openServer(t, backend, { worker: false });
    for (let index = 0; index < 3; index++) await one.book.jobs.enqueue("ours");
    const there = await firstId(await follow(one, "job.created"));
    await book.jobs.enqueue("theirs");

    const heard = await hearUntil(await follow({ ask }, "job.created", there), () => true);

    assert.equal(heard.facts[0]?.event, "reset");
  });
}

test("a stream that is refused is not counted as open", async (t) => {
  const { ask, tokens } = await openServer(t, "sqlite", { worker: false });
  for (const path of ["/stream?topic=nothing", "/stream?tenant=acme"])
    assert.equal((await ask("GET", path)).status, 400);
  assert.equal((await ask("GET", "/stream", { headers: { "last-event-id": "7" } })).status, 400);
  await (await ask("HEAD", "/stream")).body?.cancel();

  const metrics = await ask("GET", "/../../metrics", { token: tokens.book });
  assert.match(await metrics.text(), /^daybook_server_streams 0$/m);
});
