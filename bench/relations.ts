// Questions along relations, against the SQL that a careful person would write for plain tables with the same documents and indexes.
import { Client } from "pg";
import { z } from "zod";
import { entity, open, relation, type Book } from "../src/index.ts";
import { durablePostgres } from "../test/support/postgres.ts";
import { openBare } from "./harness/bare-sqlite.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import type { Report } from "./harness/report.ts";
import { startBareReader } from "./reads/bare-reader.ts";
import { scratch } from "./harness/scratch.ts";
import { customersCount, fillStatements } from "./relations/fill.ts";

const Customer = entity("customer", {
  schema: z.object({ id: z.string(), country: z.string(), text: z.string() }),
  key: "id",
});
const Order = entity("order", {
  schema: z.object({ id: z.string(), status: z.string(), text: z.string(), total: z.number() }),
  key: "id",
  indexes: ["status"],
});
const Placed = relation("placed", { from: Customer, to: Order, schema: z.object({ at: z.number() }) });

export const relations: Benchmark = {
  name: "relations",
  title: `${customersCount.toLocaleString("en")} customers, as many orders, and who placed which`,
  async run(report) {
    await onSqlite(report);
    await onPostgres(report);
  },
};

async function onSqlite(report: Report): Promise<void> {
  const path = scratch("relations.db");
  const book = await open(path, { use: [Placed], worker: false, durability: "normal" });
  await begin(book);
  const db = openBare(path, "normal");
  const types = db.prepare("select name, seq from daybook_record_type").all() as { name: string; seq: number }[];
  for (const text of fillStatements("sqlite", numbersOf(types))) db.exec(text);
  db.close();
  // In a thread, as the book's own: a careful person does not hold the loop either.
  const reader = startBareReader(path);
  await compare(report, "sqlite", book, (text) => reader.all(text));
  await reader.stop();
  await book.close();
}

async function onPostgres(report: Report): Promise<void> {
  const server = await durablePostgres();
  try {
    const book = await open(server.url, { use: [Placed], worker: false });
    await begin(book);
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query("set search_path to daybook");
    const { rows } = await client.query<{ name: string; seq: string }>("select name, seq from daybook_record_type");
    for (const text of fillStatements("postgres", numbersOf(rows))) await client.query(text);
    await compare(report, "postgres", book, async (text) => (await client.query(text)).rows.length);
    await client.end();
    await book.close();
  } finally {
    await server.stop();
  }
}

/** Two commits, so that there is a past. */
async function begin(book: Book): Promise<void> {
  await book.write(async (tx) => {
    await tx.records.put(Customer, { id: "c", country: "c1", text: "" });
    await tx.records.put(Order, { id: "o", status: "paid", text: "", total: 1 });
    await tx.records.link(Placed, { from: "c", to: "o" }, { at: 1 });
  });
  await book.records.put(Customer, { id: "c", country: "c2", text: "" });
}

function numbersOf(types: readonly { readonly name: string; readonly seq: number | string }[]): {
  customer: number;
  order: number;
  placed: number;
} {
  const of = (name: string): number => Number(types.find((type) => type.name === name)?.seq);
  return { customer: of("customer"), order: of("order"), placed: of("placed") };
}

const rounds = 9;

async function compare(
  report: Report,
  dialect: "sqlite" | "postgres",
  book: Book,
  bare: (text: string) => Promise<unknown>,
): Promise<void> {
  const field = (name: string, of = "o"): string =>
    dialect === "sqlite" ? `json_extract(${of}.body, '$.${name}')` : `(${of}.body ->> '${name}')`;
  const total = dialect === "sqlite" ? field("total") : `${field("total")}::numeric`;
  const joined = "from bare_placed p join bare_order o on o.id = p.order_id";
  const having = (where: string): string =>
    `from bare_customer c where exists (select 1 ${joined} where p.customer_id = c.id and ${where})`;
  const placed = book.records.query(Placed);
  const customers = book.records.query(Customer);
  const large = customers.where((c) => c.related(Placed).some((order) => order("total").gt(900)));
  const refunded = customers.where((c) => c.related(Placed).some((order) => order("status").eq("refunded")));
  const sum = (of: typeof placed): Promise<unknown> => of.aggregate((each) => ({ sum: each.to("total").sum() }));
  const pairs: readonly (readonly [string, () => Promise<unknown>, string])[] = [
    ["sum over an endpoint", () => sum(placed), `select sum(${total}) ${joined}`],
    ["the same as of the commit before", () => sum(placed.asOf(1)), `select sum(${total}) ${joined}`],
    [
      "top 10 groups by one endpoint of sums over the other",
      () =>
        placed
          .groupBy((each) => ({ country: each.from("country") }))
          .aggregate((each) => ({ sum: each.to("total").sum() }), {
            orderBy: (row) => row("sum"),
            direction: "desc",
            limit: 10,
          }),
      `select ${field("country", "c")} as country, sum(${total}) as sum ${joined} join bare_customer c on c.id = p.customer_id
        group by 1 order by 2 desc limit 10`,
    ],
    ["count of entities with a related one", () => large.count(), `select count(*) ${having(`${total} > 900`)}`],
    ["the same as of the commit before", () => large.asOf(1).count(), `select count(*) ${having(`${total} > 900`)}`],
    [
      "first page of them",
      () => large.list(),
      `select c.id, c.body ${having(`${total} > 900`)} order by c.id limit 51`,
    ],
    [
      "the ten with a rare one, by an index",
      () => refunded.list(),
      `select c.id, c.body ${having(`${field("status")} = 'refunded'`)} order by c.id limit 51`,
    ],
    [
      "count of entities with two related ones",
      () => customers.where((c) => c.related(Placed).count().gte(2)).count(),
      "select count(*) from bare_customer c where (select count(*) from bare_placed p where p.customer_id = c.id) >= 2",
    ],
    [
      "first page with what is related",
      () => customers.with((c) => ({ orders: c.related(Placed) })).list(),
      `select c.id, c.body, o.id, o.body ${joined} join (select * from bare_customer order by id limit 51) as c on c.id = p.customer_id order by c.id`,
    ],
  ];
  for (const [what, ours, text] of pairs) {
    const [own, reference]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      own.push(await elapsed(ours));
      reference.push(await elapsed(() => bare(text)));
    }
    // Plain tables have no past, and a page of a few rows is the price of asking.
    const goal = /as of|with what/.test(what) ? {} : { goalMin: 0.33 };
    report.times(`${dialect}: ${what}`, own, { referenceMs: reference, ...goal });
  }
}

async function elapsed(run: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await run();
  return performance.now() - begun;
}
