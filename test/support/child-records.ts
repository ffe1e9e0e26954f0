// Writes records, a relation, an event, a job and a row of its own in one transaction, whose records a listener hears of, and is
// killed before the n-th statement of it; n = 0: never.
import { z } from "zod";
import { entity, job, listener, open, relation } from "../../src/index.ts";

const [url = "", nth = "0"] = process.argv.slice(2);
const Order = entity("order", {
  schema: z.object({ id: z.string(), total: z.number() }),
  key: "id",
});
const Paid = relation("paid", { from: Order, to: Order });
const receipt = job("receipt", { run: () => undefined });
const hear = listener("hear", { on: "record.order.created", run: () => undefined });
let left = Number.POSITIVE_INFINITY;
const book = await open(url, {
  use: [Order, Paid, receipt, hear],
  fault: (moment) => {
    if (moment !== "before" || --left > 0) return;
    process.kill(process.pid, "SIGKILL");
    // The signal may arrive a moment later; nothing after this point may run until then.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  },
});
await book.write((tx) => tx.sql`create table if not exists own (id text not null)`);
console.log("open");
if (nth !== "0") left = Number(nth);
await book.write(async (tx) => {
  await tx.records.put(Order, { id: "o-1", total: 40 }, { actor: "ada" });
  await tx.jobs.enqueue(receipt, { order: "o-1" });
  await tx.events.publish("order.paid", { order: "o-1" });
  await tx.records.put(Order, { id: "o-2", total: 50 });
  await tx.records.link(Paid, { from: "o-1", to: "o-2" });
  await tx.sql`insert into own (id) values ('o-1')`;
});
console.log("done");
left = Number.POSITIVE_INFINITY;
await book.close();
