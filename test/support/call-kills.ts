// Processes that submit and send calls, killed at random moments; every call reaches one end, and none fails unsent.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/id.ts";
import { open, seededRandom } from "../../src/index.ts";
import { target } from "../calls/target.ts";
import { startCallProcess, type CallProcess } from "./call-process.ts";
import { cleanup, bookUrl, type Backend } from "./open-test.ts";
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
  const url = await bookUrl(t, backend);
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
    await victim?.hear("submitted"); // however slow the machine is, a kill finds something under way
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
      (select count(*) from daybook_call_attempt a where a.tenant_id = call.tenant_id and a.call_id = call.id) as sent,
      (select count(*) from daybook_call_attempt a where a.tenant_id = call.tenant_id and a.call_id = call.id
        and a.error_kind = 'lost') as lost
      from daybook_call call`,
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
  assert.ok(acknowledged.length >= kills, "nothing was under load");
}
