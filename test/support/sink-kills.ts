// Processes that change a state and bring it to the outside, killed between the change, the publication and its record.
import { connect } from "@nats-io/transport-node";
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/id.ts";
import { open, seededRandom, type Book, type CloudEvent } from "../../src/index.ts";
import { target } from "../calls/target.ts";
import { natsProgram, natsServer, type NatsServer } from "../nats/nats-server.ts";
import { startChild, type Child } from "./child-process.ts";
import { cleanup, bookUrl, type Backend } from "./open-test.ts";
import { until } from "./session-row.ts";

/** Where a sink's process is killed: before a message goes out, and after it was acknowledged, before that is written down. */
export const sinkKillPoints = ["sinks.begun", "sinks.sent"] as const;

/** A message as it came out, the same whichever way it took. */
type Came = { readonly key: string; readonly n: number; readonly id: string; readonly messageId: string };

/** Everything that the book says was changed comes out of both sinks at least once, in the order of its key, and a repeat has the
 *  id of the first. Without a NATS server only the webhook is there to be asked. */
export async function killSinks(t: TestContext, backend: Backend, kills: number): Promise<void> {
  const seed = Math.floor(systemRandom() * 2 ** 32);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const server = await target(t, (_request, response) => void setTimeout(() => response.end(), random() * 5));
  const stream = natsProgram === undefined ? undefined : await listenTo(t);
  const url = await bookUrl(t, backend);
  const book = await open(url, { worker: false, views: true });
  cleanup(t, () => book.close());
  await book.write((tx) => tx.sql`create table state_change (key text, n integer, event_id text)`);

  const said = { url, webhook: server.url, servers: stream?.server.url };
  const start = (number: number): Child => {
    const point = sinkKillPoints[number % 3];
    const crash = point === undefined ? {} : { DAYBOOK_CRASH_AT: `${point}:${1 + Math.floor(random() * 20)}` };
    return startChild(t, "sink", [JSON.stringify({ ...said, name: `p${number}` })], { env: crash });
  };
  // Two at a time, so that what one leaves behind is brought out by the other while it lives.
  const running = [start(0), start(1)];
  for (let killed = 0; killed < kills; killed++) {
    const victim = running[killed % 2];
    if (sinkKillPoints[killed % 3] === undefined) {
      await victim?.said("working");
      await systemClock.sleep(random() * 200);
      victim?.kill();
    }
    const end = await victim?.ended;
    assert.equal(end?.signal, "SIGKILL", end?.stderr ?? "");
    running[killed % 2] = start(killed + 2);
  }
  for (const child of running) child.kill();
  for (const child of running) await child.ended;
  startChild(t, "sink", [JSON.stringify(said)]);
  await until("everything went out", async () => ((await toPublish(book)) === 0 ? true : undefined), { ms: 120_000 });

  const changed = await readChanges(book);
  const hooked = server.received.map(({ body, headers }) =>
    came(body, String(headers["webhook-id"] ?? headers["idempotency-key"])),
  );
  const repeats = [checkOut(changed, hooked, (id) => id)];
  if (stream !== undefined) {
    await stream.flush();
    repeats.push(checkOut(changed, stream.seen, (id) => `stream/default/${id}`));
    // The stream itself knows a repeat by its id, and has each of them once.
    const kept = (await stream.server.messages("KILL")).map((each) =>
      came(each.string(), each.header.get("Nats-Msg-Id")),
    );
    assert.deepEqual([checkOut(changed, kept, (id) => `stream/default/${id}`), kept.length], [0, changed.size]);
  }
  assert.deepEqual(await book.doctor(), []);
  assert.deepEqual((await book.deadLetters.list()).items, []);
  assert.ok(changed.size > kills, "nothing was under load");
  const [hook, nats] = repeats;
  t.diagnostic(`${kills} kills, ${changed.size} changes; came again: webhook ${hook}, NATS ${nats ?? "is not here"}`);
}

/** Each of them, in order, by its own id; how many came again. */
function checkOut(changed: ReadonlyMap<string, string>, all: readonly Came[], idOf: (id: string) => string): number {
  const last = new Map<string, number>();
  let repeats = 0;
  for (const { key, n, id, messageId } of all) {
    const before = last.get(key) ?? -1;
    assert.ok(n === before + 1 || n === before, `${key}: ${n} came after ${before}`);
    assert.deepEqual([id, messageId], [changed.get(`${key} ${n}`), idOf(id)]);
    if (n === before) repeats++;
    last.set(key, n);
  }
  assert.equal(all.length - repeats, changed.size);
  return repeats;
}

function came(text: string, messageId: string): Came {
  const { id, subject = "", data } = JSON.parse(text) as CloudEvent;
  return { key: subject, n: (data as { n: number }).n, id, messageId };
}

async function readChanges(book: Book): Promise<Map<string, string>> {
  const rows = await book.read(
    (tx) => tx.sql<{ key: string; n: number; event_id: string }>`select key, n, event_id from state_change`,
  );
  return new Map(rows.map(({ key, n, event_id: id }) => [`${key} ${n}`, id]));
}

async function toPublish(book: Book): Promise<number> {
  const [row] = await book.read(
    (tx) => tx.sql<{ n: number }>`select count(*) as n from outbox where published_at is null`,
  );
  return Number(row?.n);
}

type Listening = { readonly server: NatsServer; readonly seen: readonly Came[]; flush(): Promise<void> };

/** A stream, and somebody who also hears what the stream drops as a repeat. */
async function listenTo(t: TestContext): Promise<Listening> {
  const server = await natsServer(t);
  await server.stream("KILL", "kill.>");
  const connection = await connect({ servers: server.url });
  cleanup(t, () => connection.close());
  const seen: Came[] = [];
  connection.subscribe("kill.>", {
    callback: (_error, message) => void seen.push(came(message.string(), message.headers?.get("Nats-Msg-Id") ?? "")),
  });
  await connection.flush();
  return { server, seen, flush: () => connection.flush() };
}
