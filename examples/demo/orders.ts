// Orders, as a web shop takes them, and the people who place them. It writes to the book by itself, as a web server would; what
// follows is the work of jobs and listeners.
import { app, type UserTx } from "daybook";
import { addresses, customers, products } from "./catalogue.ts";
import { between, chance, pick } from "./chance.ts";
import { chargeCard, refund } from "./payments.ts";
import { Contains, Order, OrderPlaced, Placed } from "./records.ts";
import { everyNowAndThen } from "./world.ts";

/** Record, relations, event and job are one transaction, so that none is there without the others. */
export async function placeOrder(tx: UserTx): Promise<string> {
  const [taken] = await tx.sql<{
    number: number;
  }>`update demo_order_number set next = next + 1 returning next - 1 as number`;
  const id = `o-${taken?.number ?? 0}`;
  const customer = id === "o-17" ? "ada" : pick(customers, "customer", id).id;
  const basket = [...new Set([pick(products, "first", id), pick(products, "second", id)])];
  const lines = basket.map((product) => ({ product, count: between(1, 3, "count", id, product.sku) }));
  const cents = lines.reduce((sum, { product, count }) => sum + product.cents * count, 0);
  await tx.records.annotate({ actor: customer, reason: "ordered in the web shop" });
  const shipTo = id === "o-17" ? addresses[1] : pick(addresses, "address", id);
  await tx.records.put(Order, { id, customer, status: "placed", cents, shipTo });
  await tx.records.link(Placed, { from: customer, to: id });
  for (const { product, count } of lines) await tx.records.link(Contains, { from: id, to: product.sku }, { count });
  await tx.events.publish(OrderPlaced, { orderId: id, cents }, { key: id });
  await tx.jobs.enqueue(chargeCard, { orderId: id }, { tags: [`customer:${customer}`] });
  return id;
}

/** Visitors order, and some of them send things back. */
export const visitors = app("visitors", {
  setup(shop) {
    const { book, signal } = shop;
    void everyNowAndThen("order", signal, async () => {
      const id = await book.write(placeOrder);
      if (chance("sends back", id) > 0.07) return;
      const { cents } = await book.records.get(Order, id);
      await book.jobs.enqueue(refund, { orderId: id, cents }, { in: between(20, 200, "back", id) * 60_000 });
    });
  },
});
