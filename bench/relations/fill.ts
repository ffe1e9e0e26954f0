// A hundred thousand customers, each with an order, and what connects them: in the book's own tables, and in plain tables with the indexes
// that a careful person would give them. Every second order was changed after commit 1, so that the past is another.
export const customersCount = 100_000;

type Types = { readonly customer: number; readonly order: number; readonly placed: number };

/** The statements for SQLite or PostgreSQL. */
export function fillStatements(dialect: "sqlite" | "postgres", { customer, order, placed }: Types): string[] {
  const isSqlite = dialect === "sqlite";
  const last = customersCount - 1;
  const rows = isSqlite
    ? `with recursive g(n) as (select 0 union all select n + 1 from g where n < ${last}) select`
    : "select";
  const from = isSqlite ? "from g" : `from generate_series(0, ${last}) as g(n)`;
  const key = (letter: string): string => `'${letter}' || (1000000 + n)`;
  const object = (fields: string): string => (isSqlite ? `json_object(${fields})` : `jsonb_build_object(${fields})`);
  const text = "x".repeat(100);
  const customerBody = object(`'country', 'c' || (n % 200), 'id', ${key("c")}, 'text', '${text}'`);
  const orderBody = (total: string): string =>
    object(
      `'id', ${key("o")}, 'status', case when n % 10000 = 7 then 'refunded' else 'paid' end, 'text', '${text}', 'total', ${total}`,
    );
  const what = "tenant_id, type_seq, key, revision, schema_version, from_commit, body";
  const ends = "from_type_seq, from_key, to_type_seq, to_key, instance_key";
  const record = (columns: string, values: string, where = ""): string =>
    `insert into daybook_record (${columns}) ${rows} ${values} ${from} ${where}`;
  const json = isSqlite ? "text" : "jsonb";
  const total = "n % 1000";
  const status = isSqlite ? "json_extract(body, '$.status')" : "(body ->> 'status')";
  return [
    "delete from daybook_record",
    record(what, `'default', ${customer}, ${key("c")}, 1, 1, 1, ${customerBody}`),
    record(what, `'default', ${order}, ${key("o")}, 1 + n % 2, 1, 1 + n % 2, ${orderBody(`${total} + n % 2`)}`),
    `insert into daybook_record_version (${what}, to_commit, ended) ${rows} 'default', ${order}, ${key("o")}, 1, 1, 1, ${orderBody(total)}, 2, 'replaced'
      ${from} where n % 2 = 1`,
    record(
      `${what}, ${ends}`,
      `'default', ${placed}, ${key("p")}, 1, 1, 1, '{"at":1}'${isSqlite ? "" : "::jsonb"}, ${customer}, ${key("c")}, ${order}, ${key("o")}, ''`,
    ),
    `create table bare_customer (id text primary key, body ${json} not null)`,
    `create table bare_order (id text primary key, body ${json} not null)`,
    "create table bare_placed (customer_id text not null, order_id text not null, primary key (customer_id, order_id))",
    `insert into bare_customer ${rows} ${key("c")}, ${customerBody} ${from}`,
    `insert into bare_order ${rows} ${key("o")}, ${orderBody(`${total} + n % 2`)} ${from}`,
    `insert into bare_placed ${rows} ${key("c")}, ${key("o")} ${from}`,
    "create index bare_placed_order on bare_placed (order_id)",
    `create index bare_order_status on bare_order (${status})`,
    ...["bare_customer", "bare_order", "bare_placed", "daybook_record", "daybook_record_version"].map(
      (table) => `analyze ${table}`,
    ),
  ];
}
