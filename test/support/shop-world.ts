// A shop whose book has something of everything that the examples of the verbs name.
import { z } from "zod";
import { app, entity, event, job, listener, relation, schedule, sink, type Book } from "../../src/index.ts";

export const sendReceipt = job("send-receipt", {
  queue: "mail",
  attempts: 1,
  run: (params: unknown) => ({ sent: params }),
});
export const failing = job("sum-orders", {
  attempts: 1,
  run: () => {
    throw new RangeError("there are no orders");
  },
});
export const orderPaid = event("order.paid", { schema: z.object({ orderId: z.string() }) });
export const tellStock = listener("tell-stock", {
  on: orderPaid,
  attempts: 1,
  run: ({ orderId }) => {
    if (orderId === "o-13") throw new TypeError("the stock has no o-13");
  },
});
export const warehouse = sink("warehouse", { on: "stock.>", to: () => undefined });
export const receipts = schedule("receipts", { daily: "07:00", zone: "Europe/Madrid", job: sendReceipt });
export const lights = app("lights", {
  setup(home) {
    home.on("motion.hall", { name: "on" }, () => undefined);
  },
});
const status = z.enum(["open", "paid"]);
export const Order = entity("order", {
  schema: z.object({ id: z.string(), total: z.number(), status: status.optional() }),
  key: "id",
});
export const Customer = entity("customer", { schema: z.object({ id: z.string(), country: z.string() }), key: "id" });
export const Placed = relation("placed", { from: Customer, to: Order, schema: z.object({ at: z.number() }) });
export const Note = entity("note", {
  schema: z.object({ id: z.string(), text: z.string() }),
  key: "id",
  search: ["text"],
});

export const shop = [
  sendReceipt,
  failing,
  orderPaid,
  tellStock,
  warehouse,
  receipts,
  lights,
  Order,
  Customer,
  Placed,
  Note,
];

/** The id that stands for the example's, by the noun that asks, or by the verb. */
export type Ids = Readonly<Record<string, string>>;

/** Fills a book, always in the same way, and works on it until nothing is left to do. */
export async function fillShop(book: Book): Promise<Ids> {
  const worker = await book.startWorker();
  const done = await book.jobs.enqueue(sendReceipt, { orderId: "o-16" });
  await book.jobs.enqueue(failing, null);
  await book.events.publish("order.paid", { orderId: "o-13" }, { id: "o-17-paid" });
  await worker.idle();
  await worker.stop();

  const waiting = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" }, { in: "1d" });
  const group = await book.groups.create({ mode: "parallel", name: "nightly" }, (members) => {
    members.add(sendReceipt, { orderId: "o-18" }, { in: "1d" });
  });
  await book.templates.create("monthly", { job: sendReceipt, params: { copies: 2 } });
  const call = await book.calls.submit({
    method: "POST",
    url: "https://stock.example/reserve",
    json: { secret: 1 },
    in: "1d",
  });
  await book.records.put(Customer, { id: "ada", country: "NO" });
  await book.records.put(Order, { id: "o-17", total: 40, status: "open" });
  await book.records.put(Order, { id: "o-17", total: 40, status: "paid" });
  await book.records.put(Note, { id: "n-1", text: "milk and bread" });
  await book.records.link(Placed, { from: "ada", to: "o-17" }, { at: 1 });
  const [letter] = (await book.deadLetters.list()).items;
  const [run] = (await book.runs.list({ name: "send-receipt" })).items;
  return {
    jobs: waiting.id,
    "jobs.result": done.id,
    groups: group.id,
    events: "o-17-paid",
    deadLetters: letter?.id ?? "",
    calls: call.id,
    runs: run?.id ?? "",
    sessions: book.sessionId ?? "",
  };
}
