// Views that a book has on request. Each carries a mark with the hash of its text, so that ours are told from a user's own of the
// same name, and those of an older Daybook from today's. SQLite keeps the mark as a comment in the view's text, PostgreSQL,
// which does not keep the text, as the view's comment.
import { createHash } from "node:crypto";
import { DaybookError } from "../core/error.ts";
import { anyOf, lockNames } from "./word.ts";
import { rawSql, render, sql, type Sql } from "./sql.ts";
import type { Store, Tx } from "./store.ts";

export type View = {
  readonly name: string;
  /** The `select` that it stands for. */
  readonly as: Sql;
};

/** Makes all views, or none: a name that is taken by something of the user's is refused. Returns the names of those that it
 *  made, which are none when all are there as they should be. A view may read those that stand before it in the list. */
export function createViews(store: Store, views: readonly View[]): Promise<readonly string[]> {
  return store.write(async (tx) => {
    const found = await findNames(tx, views);
    const taken = [...found].filter(([, mark]) => mark === null).map(([name]) => name);
    if (taken.length > 0) throw namesTaken(taken);
    if (views.every((view) => found.get(view.name) === markOf(tx, view))) return [];
    await dropAll(tx, views, found);
    for (const view of views) {
      const mark = markOf(tx, view);
      await tx.run(sql`create view ${rawSql(view.name)} as ${rawSql(`/* ${mark} */`)} ${view.as}`);
      if (tx.dialect === "postgres") await tx.run(rawSql(`comment on view ${view.name} is '${mark}'`));
    }
    return views.map(({ name }) => name);
  });
}

/** Drops those of the views that are there and ours, and returns their names. */
export function dropViews(store: Store, views: readonly View[]): Promise<readonly string[]> {
  return store.write(async (tx) => dropAll(tx, views, await findNames(tx, views)));
}

async function dropAll(
  tx: Tx,
  views: readonly View[],
  found: ReadonlyMap<string, string | null>,
): Promise<readonly string[]> {
  const ours = views.map(({ name }) => name).filter((name) => (found.get(name) ?? null) !== null);
  for (const name of ours.toReversed()) await tx.run(rawSql(`drop view ${name}`));
  return ours;
}

/** Which of the names are taken, each with its mark; null: it is not one of our views. */
async function findNames(tx: Tx, views: readonly View[]): Promise<Map<string, string | null>> {
  const names = views.map(({ name }) => name);
  // Two processes that make them at the same time take turns; SQLite has one writer.
  await lockNames(tx, ["views"]);
  const rows = await tx.all<{ name: string; text: string | null }>(
    tx.dialect === "sqlite"
      ? sql`select lower(name) as name, case type when 'view' then sql end as text from sqlite_schema
          where lower(name) ${anyOf("text", names)}`
      : sql`select relname as name, case relkind when 'v' then obj_description(pg_class.oid, 'pg_class') end as text
          from pg_class where relnamespace = (select oid from pg_namespace where nspname = current_schema())
          and relname ${anyOf("text", names)}`,
  );
  return new Map(rows.map(({ name, text }) => [name, /\bdaybook:[0-9a-f]{16}\b/.exec(text ?? "")?.[0] ?? null]));
}

function markOf(tx: Tx, view: View): string {
  return `daybook:${createHash("sha256").update(render(view.as, tx.dialect).text).digest("hex").slice(0, 16)}`;
}

function namesTaken(names: readonly string[]): DaybookError {
  const list = names.map((name) => `"${name}"`).join(", ");
  return new DaybookError(
    "conflict",
    `the book has a table or view of your own named ${list}, so no view was made: rename yours, or do without the views`,
    { details: { names } },
  );
}
