// Events: a payment is said once and heard by three listeners, one of which fails, is a dead letter, and is redriven.
//
//   npx node --conditions=@daybook/source examples/events.ts     in this repo, on its sources
import { event, listener, open } from "daybook";

const Paid = event<{ orderId: string }>("order.paid");
let printerWorks = false;

const ship = listener("ship", {
  on: Paid,
  // The table's row, the next event and the acknowledgement are one commit.
  run: ({ orderId }, { finish }) =>
    finish(async (tx) => {
      await tx.sql`insert into parcel (order_id) values (${orderId})`;
      await tx.events.publish("parcel.made", { orderId });
    }),
});
const print = listener("print", {
  on: Paid,
  attempts: 1,
  run() {
    if (!printerWorks) throw new Error("out of paper");
    console.log("printed");
  },
});
const watch = listener("watch", {
  on: ["parcel.*", "event.dead_letter"],
  run: (_payload, { event: { topic, chainDepth } }) => console.log(`heard ${topic}, ${chainDepth} after the first`),
});

await using book = await open(":memory:", { use: [ship, print, watch] });
await book.write((tx) => tx.sql`create table parcel (order_id text)`);
const worker = await book.startWorker();

const { id } = await book.events.publish(Paid, { orderId: "o-17" });
await worker.idle();

const paid = await book.events.get(id);
console.log(
  `order.paid is ${paid.status}: ${paid.deliveries.map((each) => `${each.listener} ${each.status}`).join(", ")}`,
);

printerWorks = true;
const { count } = await book.deadLetters.redriveAll({ listener: "print" });
await worker.idle();
console.log(`${count} redriven, order.paid is ${(await book.events.get(id)).status}`);
