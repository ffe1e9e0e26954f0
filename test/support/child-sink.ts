// A program that changes a state, says so in the same transaction, and brings what is said to the outside, until it is killed.
import { systemClock } from "../../src/core/clock.ts";
import { nats, open, sink } from "../../src/index.ts";

const { url, name, webhook, servers } = JSON.parse(process.argv[2] ?? "{}") as {
  url: string;
  /** What its keys begin with; left out: it changes nothing, and only brings out what is there. */
  name?: string;
  webhook: string;
  servers?: string;
};
const usual = { on: "order.*", attempts: 1000, backoff: ["0s"] } as const;
const hook = sink("hook", { ...usual, to: { webhook: { url: webhook } } });
const stream =
  servers === undefined ? [] : [sink("stream", { ...usual, to: nats({ servers, subject: "kill.{topic}" }) })];

const book = await open(url, { use: [hook, ...stream], calls: { allow: ["127.0.0.1"] } });
await book.startWorker();
console.log("working");

// Several of a key in one transaction: they all wait to go out, and only their order keeps them apart.
const atOnce = 5;
for (let n = 0; name !== undefined; n += atOnce) {
  for (const letter of ["a", "b", "c"]) {
    const key = `${name}-${letter}`;
    await book.write(async (tx) => {
      for (let next = n; next < n + atOnce; next++) {
        const { id } = await tx.events.publish("order.changed", { n: next }, { key });
        await tx.sql`insert into state_change (key, n, event_id) values (${key}, ${next}, ${id})`;
      }
    });
  }
  // Slower than they go out, else what a slow machine leaves to the end is without bound.
  await systemClock.sleep(150);
}
