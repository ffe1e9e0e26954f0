// A small shop that is never still: every few seconds somebody orders, the payment is said, and three listeners hear of it, one of
// which sometimes runs out of paper. `npm start` serves it.
//
//   npx daybook serve --book shop.db examples/shop.ts
import { entity, event, job, listener, schedule } from "daybook";
import { z } from "zod";

export const Order = entity("order", {
  schema: z.object({ id: z.string(), customer: z.string(), total: z.number(), status: z.enum(["open", "paid"]) }),
  key: "id",
  indexes: ["status"],
});
export const OrderPaid = event<{ orderId: string }>("order.paid");

const customers = ["ada@example.org", "grace@example.org", "linus@example.org"];

/** What happens in the shop happens in one transaction: the order, the event and the job, or none of them. */
export const order = job("order", {
  async run(_params: unknown, { job: { id }, finish }) {
    const number = Number.parseInt(id.slice(-6), 16);
    const customer = customers[number % customers.length] ?? "ada@example.org";
    await finish(async (tx) => {
      await tx.records.put(Order, { id: `o-${id.slice(-6)}`, customer, total: 5 + (number % 90), status: "paid" });
      await tx.events.publish(OrderPaid, { orderId: `o-${id.slice(-6)}` });
      await tx.jobs.enqueue(sendReceipt, { orderId: `o-${id.slice(-6)}`, customer }, { queue: "mail" });
    });
  },
});

export const sendReceipt = job("send-receipt", {
  attempts: 3,
  async run({ orderId, customer }: { orderId: string; customer: string }, { log }) {
    log(`a receipt for ${orderId} goes to ${customer}`);
  },
});

export const reserveStock = listener("reserve-stock", {
  on: OrderPaid,
  run: ({ orderId }, { log }) => log(`the parts of ${orderId} are reserved`),
});

export const print = listener("print", {
  on: OrderPaid,
  attempts: 2,
  run({ orderId }) {
    if (orderId.endsWith("7")) throw new Error(`out of paper for ${orderId}`);
  },
});

export const customersOrder = schedule("customers-order", { every: "3s", job: order, params: {} });
