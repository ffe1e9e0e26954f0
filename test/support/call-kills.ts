// Processes that submit and send calls, killed at random moments; every call reaches one end, and none fails unsent.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/random.ts";
import { open, seededRandom, sink, type AnyListener, type CloudEvent } from "../../src/index.ts";
import { target } from "../calls/target.ts";
import { startCallProcess, type CallProcess } from "./call-process.ts";
import { cleanup, testUrl, type Backend } from "./open-test.ts";
import { until } from "./session-row.ts";

/** The kill points of the room, in the order in which a call meets them. */
export const callKillPoints = ["calls.begun", "calls.answered"] as const;

export async function killSenders(t: TestContext, backend: Backend, kills: number): Promise<void> {
  const seed = Math.floor(systemRandom() * 2 ** 32);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  // Some answers take a while, so that a kill finds requests on their way; some ask to come again.
  const server = await target(t, (_request, response) => {
    const dice = random();
    const answer = (): void => void response.writeHead(dice < 0.1 ? 503 : 200).end();
    if (dice < 0.5) answer();
    else setTimeout(answer, dice * 40);
  });
  const url = await testUrl(t, backend);
  const book = await open(url, { worker: false, calls: { allow: ["127.0.0.1"] } });
  cleanup(t, () => book.close());
  const all: CallProcess[] = [];
  const start = (): CallProcess => {
    const child = startCallProcess(t, { url, submits: 100_000, target: server.url });
    all.push(child);
    return child;
  };
  const running = [start(), start()];
  for (let killed = 0; killed < kills; killed++) {
    const index = killed % running.length;
    const victim = running[index];
    await victim?.hear("working");
    await systemClock.sleep(50 + random() * 250);
    await victim?.kill();
    running[index] = start();
  }
  for (const child of running) await child.kill();

  const last = startCallProcess(t, { url });
  await last.hear("working");
  const isOpen = { status: ["scheduled", "running"], limit: 1 } as const;
  const ended = async (): Promise<true | undefined> =>
    (await book.calls.list(isOpen)).items.length === 0 ? true : undefined;
  await until("all calls have ended", ended, { ms: 120_000 });

  const acknowledged = all.flatMap(({ submitted }) => submitted);
  const known = await book.read(
    (tx) => tx.sql<{ id: string; status: string; sent: number; lost: number }>`select call.id, call.status,
      (select count(*) from call_attempt a where a.tenant_id = call.tenant_id and a.call_id = call.id) as sent,
      (select count(*) from call_attempt a where a.tenant_id = call.tenant_id and a.call_id = call.id
        and a.error_kind = 'lost') as lost
      from call`,
  );
  const byId = new Map(known.map((call) => [call.id, call]));
  assert.deepEqual(
    acknowledged.filter((id) => !byId.has(id)),
    [],
  );
  const reached = new Set(server.received.map(({ headers }) => headers["idempotency-key"]));
  for (const { id, status, sent } of known) {
    assert.ok(status === "succeeded" || status === "failed", `${id} is ${status}`);
    assert.ok(Number(sent) > 0 && reached.has(id), `${id} is ${status} and was not sent`);
  }
  assert.deepEqual(await book.doctor(), []);
  const lost = known.filter((call) => Number(call.lost) > 0).length;
  t.diagnostic(
    `${kills} kills, ${known.length} calls, ${lost} of them lost on the way, ${server.received.length} requests`,
  );
  assert.ok(acknowledged.length > kills, "nothing was under load");
}

/** The sink of these tests: it may be lost as often as it is killed. */
export function killedSink(url: string): AnyListener {
  return sink("killed", { on: "order.>", losses: 1000, attempts: 1000, backoff: ["0s"], to: { webhook: { url } } });
}

/** Processes that bring events to a webhook, killed at random moments. Each comes at least once, in the order of its key, and
 *  a repeat has the id of the first. */
export async function killSinks(t: TestContext, backend: Backend, kills: number): Promise<void> {
  const seed = Math.floor(systemRandom() * 2 ** 32);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const server = await target(t, (_request, response) => void setTimeout(() => response.end(), random() * 20));
  const url = await testUrl(t, backend);
  // It is here, so that its listener is known from the beginning; it works on nothing.
  const book = await open(url, { use: [killedSink(server.url)], calls: { allow: ["127.0.0.1"] } });
  cleanup(t, () => book.close());
  const [keys, each] = [5, 4 * kills];
  const ids = new Map<string, string>();
  await book.write(async (tx) => {
    for (let n = 0; n < each; n++) {
      for (let key = 0; key < keys; key++) {
        const { id } = await tx.events.publish("order.changed", { n }, { key: `o-${key}` });
        ids.set(`o-${key} ${n}`, id);
      }
    }
  });
  for (let killed = 0; killed < kills; killed++) {
    const victim = startCallProcess(t, { url, sink: server.url });
    const before = server.received.length;
    await server.until(before + 1);
    await systemClock.sleep(random() * 100);
    await victim.kill();
  }
  startCallProcess(t, { url, sink: server.url });
  const left = async (): Promise<number> => {
    const rows = await book.read(
      (tx) => tx.sql<{ n: number }>`select count(*) as n from outbox where published_at is null`,
    );
    return Number(rows[0]?.n);
  };
  await until("everything went out", async () => ((await left()) === 0 ? true : undefined), { ms: 60_000 });

  const last = new Map<string, number>();
  let repeats = 0;
  for (const { body, headers } of server.received) {
    const { id, subject = "", data } = JSON.parse(body) as CloudEvent;
    const { n } = data as { n: number };
    const before = last.get(subject) ?? -1;
    assert.ok(n === before + 1 || n === before, `${subject}: ${n} came after ${before}`);
    assert.deepEqual([id, headers["idempotency-key"]], [ids.get(`${subject} ${n}`), id]);
    if (n === before) repeats++;
    last.set(subject, n);
  }
  assert.deepEqual(
    [...last.values()],
    Array.from({ length: keys }, () => each - 1),
  );
  t.diagnostic(`${kills} kills, ${keys * each} events, ${repeats} of them came again`);
}
