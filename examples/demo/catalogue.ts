// Who buys what, and where it goes.
import type { UserTx } from "daybook";
import { Customer, Product } from "./records.ts";

export const customers = [
  { id: "ada", name: "Ada Lovelace", email: "ada@example.org", country: "GB" },
  { id: "grace", name: "Grace Hopper", email: "grace@example.org", country: "US" },
  { id: "linus", name: "Linus Pauling", email: "linus@example.org", country: "US" },
  { id: "maryam", name: "Maryam Mirzakhani", email: "maryam@example.org", country: "IR" },
  { id: "sofia", name: "Sofia Kovalevskaya", email: "sofia@example.org", country: "SE" },
  { id: "alan", name: "Alan Turing", email: "alan@example.org", country: "GB" },
  { id: "emmy", name: "Emmy Noether", email: "emmy@example.org", country: "DE" },
  { id: "srinivasa", name: "Srinivasa Ramanujan", email: "srinivasa@example.org", country: "IN" },
] as const;

export const products = [
  { sku: "lamp-oak", name: "Desk lamp, oak", cents: 7900, stock: 140 },
  { sku: "chair-ash", name: "Chair, ash", cents: 18_900, stock: 60 },
  { sku: "mug-blue", name: "Mug, blue", cents: 1400, stock: 900 },
  { sku: "rug-wool", name: "Rug, wool", cents: 24_500, stock: 35 },
  { sku: "shelf-pine", name: "Shelf, pine", cents: 9900, stock: 80 },
  { sku: "clock-wall", name: "Wall clock", cents: 4200, stock: 210 },
] as const;

export const addresses = [
  { street: "Storgata 5", city: "Bergen", postcode: "5015" },
  { street: "12 St James's Square", city: "London", postcode: "SW1Y 4JH" },
  { street: "Calle Mayor 7", city: "Madrid", postcode: "28013" },
  { street: "Wilhelmsplatz 1", city: "Göttingen", postcode: "37073" },
  // The printer of labels does not like this one.
  { street: "Rue de l'Église 3", city: "Nantes", postcode: "" },
] as const;

/** What is on the shelves, and who the customers are. */
export async function stockTheShop(tx: UserTx): Promise<void> {
  await tx.records.annotate({ actor: "import", reason: "the shop opens", metadata: { from: "shop-2025.csv" } });
  await tx.records.putMany(Customer, [...customers]);
  await tx.records.putMany(Product, [...products]);
  await tx.sql`create table if not exists demo_order_number (next integer not null) strict`;
  await tx.sql`insert into demo_order_number (next) values (17)`;
}
