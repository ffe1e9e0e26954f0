// Orders and customers: everything that is known, and everything that was.
import { entity, open, relation } from "daybook";
import { z } from "zod";

const Customer = entity("customer", {
  schema: z.object({ id: z.string(), country: z.string() }),
  key: "id",
});
const Order = entity("order", {
  schema: z.object({ id: z.string(), total: z.number(), status: z.enum(["open", "paid"]) }),
  key: "id",
  indexes: ["status"],
});
const Placed = relation("placed", { from: Customer, to: Order });

await using book = await open(":memory:", { use: [Customer, Order, Placed] });
const { records } = book;

// One transaction is one commit: all of it happens, or none of it.
await book.write(async (tx) => {
  await tx.records.annotate({ actor: "till 3", reason: "a sale" });
  await tx.records.put(Customer, { id: "ada", country: "NO" });
  await tx.records.put(Order, { id: "o-17", total: 40, status: "open" });
  await tx.records.link(Placed, { from: "ada", to: "o-17" });
});

// Nobody else has changed it since it was read, or this is a conflict.
const read = await records.entry(Order, "o-17");
await records.patch(Order, "o-17", { status: "paid" }, { ifRevision: read?.revision ?? 1 });

const now = await records.get(Order, "o-17");
const before = await records.get(Order, "o-17", { asOf: 1 });
console.log(`o-17 was ${before.status} and is ${now.status}`);

const paid = records.query(Order).where((order) => order("status").eq("paid"));
const norwegian = records.query(Placed).where((placed) => placed.from("country").eq("NO"));
const { sum } = await paid.aggregate((order) => ({ sum: order("total").sum() }));
console.log(`${await paid.count()} paid order, ${sum} in all; ${await norwegian.count()} from Norway`);

const { items } = await records.history(Order, "o-17");
for (const { commit, kind, value } of items) console.log(`commit ${commit}: ${kind}, ${value?.status}`);

const reached = await records.traverse(Customer, "ada", { via: Placed });
console.log(`ada placed ${reached.map(({ key }) => key).join(", ")}`);
