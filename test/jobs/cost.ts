// Counts what jobs cost a book: transactions, statements, round trips and rows.
import { rawSql } from "../../src/storage/sql.ts";
import type { Fault } from "../../src/storage/sqlite/connection.ts";
import type { Store } from "../../src/storage/store.ts";
import type { Backend } from "../support/open-test.ts";

/** One write transaction, in the order of its statements. */
export type Spent = {
  /** Without those that begin and end it. */
  readonly statements: readonly string[];
  /** How often it waited for an answer before it could send more, the wait for its commit included. On SQLite nobody waits. */
  readonly roundTrips: number;
};

export type Meter = {
  readonly fault: Fault;
  /** What was spent since the last time, transaction by transaction. Transactions that overlap cannot be told apart, and throw. */
  take(): Spent[];
};

const control = /^\s*(?:begin|commit|rollback|savepoint|release)\b/;

export function createMeter(backend: Backend): Meter {
  let done: Spent[] = [];
  let open: { statements: string[]; depthOf: Map<string, number[]>; answered: number; deepest: number } | undefined;
  return {
    fault(moment, text) {
      if (moment === "before" && text.startsWith("begin")) {
        if (open !== undefined) throw new Error("a transaction began while another was open");
        open = { statements: [], depthOf: new Map(), answered: 0, deepest: 0 };
      }
      if (open === undefined) return; // a read
      const sent = open.depthOf.get(text) ?? [];
      if (moment === "before") {
        // It was sent after the answers that are here by now, and may have needed them.
        const depth = open.answered + 1;
        open.deepest = Math.max(open.deepest, depth);
        open.depthOf.set(text, [...sent, depth]);
        if (!control.test(text)) open.statements.push(text.replace(/\s+/g, " ").trim());
        return;
      }
      // The server answers in the order of sending.
      open.answered = Math.max(open.answered, sent.shift() ?? 0);
      if (text !== "commit") return;
      done.push({ statements: open.statements, roundTrips: backend === "sqlite" ? 0 : open.deepest });
      open = undefined;
    },
    take() {
      const taken = done;
      done = [];
      return taken;
    },
  };
}

const tables = ["job", "line", "run"] as const;
const deeds = ["insert", "update", "delete"] as const;

/** Rows that were written, by table and deed: `{ "insert job": 1 }`. */
export type Rows = Readonly<Record<string, number>>;

/** Lets the book itself count the rows: triggers write down every row that changes. */
export async function countRows(store: Store): Promise<{ take(): Promise<Rows> }> {
  const run = (text: string): Promise<number> => store.write((tx) => tx.run(rawSql(text)));
  await run("create table row_written (deed text not null)");
  if (store.dialect === "postgres") {
    await run(`create function note_row() returns trigger language plpgsql as
      $$ begin insert into row_written values (tg_argv[0]); return null; end $$`);
  }
  for (const table of tables) {
    for (const deed of deeds) {
      const note =
        store.dialect === "postgres"
          ? `for each row execute function note_row('${deed} ${table}')`
          : `begin insert into row_written values ('${deed} ${table}'); end`;
      await run(`create trigger note_${deed}_${table} after ${deed} on daybook_${table} ${note}`);
    }
  }
  return {
    async take() {
      const rows = await store.read<{ deed: string; n: number }>(
        rawSql("select deed, count(*) as n from row_written group by deed order by deed"),
      );
      await run("delete from row_written");
      return Object.fromEntries(rows.map(({ deed, n }) => [deed, n]));
    },
  };
}
