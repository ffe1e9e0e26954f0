// What the shop knows: customers, products and orders, and who placed what. Every version is kept, so an order can say what it was.
import { entity, event, relation } from "daybook";
import { z } from "zod";

export const Customer = entity("customer", {
  schema: z.object({ id: z.string(), name: z.string(), email: z.string(), country: z.string() }),
  key: "id",
  indexes: ["country"],
});

export const Product = entity("product", {
  schema: z.object({ sku: z.string(), name: z.string(), cents: z.number().int(), stock: z.number().int() }),
  key: "sku",
});

export const Order = entity("order", {
  schema: z.object({
    id: z.string(),
    customer: z.string(),
    status: z.enum(["placed", "declined", "paid", "on hold", "packed", "shipped", "refunded"]),
    cents: z.number().int(),
    shipTo: z.object({ street: z.string(), city: z.string(), postcode: z.string() }),
    note: z.string().optional(),
    refundedCents: z.number().int().optional(),
  }),
  key: "id",
  indexes: ["status", "customer"],
});

export const Placed = relation("placed", { from: Customer, to: Order });
export const Contains = relation("contains", {
  from: Order,
  to: Product,
  schema: z.object({ count: z.number().int() }),
});

export const OrderPlaced = event("order.placed", { schema: z.object({ orderId: z.string(), cents: z.number() }) });
export const OrderPaid = event("order.paid", { schema: z.object({ orderId: z.string(), cents: z.number() }) });
export const OrderPacked = event("order.packed", { schema: z.object({ orderId: z.string(), shelf: z.string() }) });
