// Documents that are read along with an entity: what is related to it, in the same statement and so of the same moment, as one JSON
// value for each name.
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { limits } from "../../core/limits.ts";
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { entryOf, type Entry } from "../entry.ts";
import { sortedBy } from "./order.ts";
import type { RelatedDocuments, WithDocuments } from "./related.ts";
import { aliasOf, readFrom, type Ground } from "./source.ts";

/** For each name the documents that are related to the entity of this key, as a JSON array of rows. */
export function alongSql(ground: Ground, documents: WithDocuments, key: Sql): Sql[] {
  return Object.values(documents).map((each) => relatedRows(ground, each, key));
}

// The columns of a row: those of the relation, then those of the other end.
const linkColumns = ["from_key", "to_key", "instance_key", "revision", "from_commit", "schema_version", "body"];
const endColumns = ["revision", "from_commit", "schema_version", "body"];

function relatedRows(ground: Ground, documents: RelatedDocuments, key: Sql): Sql {
  const { relation, way, where, orders, limit } = documents;
  const { dialect } = ground.reader;
  const sort = ground.relations.get(relation);
  if (sort === undefined) return rawSql(dialect === "sqlite" ? "'[]'" : "'[]'::jsonb");
  const [near, far] = way === "out" ? (["from", "to"] as const) : (["to", "from"] as const);
  const [link, row] = [aliasOf(ground, "link"), aliasOf(ground, "row")];
  const ends = [far, ...orders.map(({ at }) => at.side).filter((side) => side === "from" || side === "to")];
  const { from, scope } = readFrom(ground, sort, where, { order: "ordered", ends, alias: link, of: { near, key } });
  const sorted = sortedBy(scope, orders);
  const columns = [
    ...linkColumns.map((name) => sql`${link}.${rawSql(name)}`),
    ...endColumns.map((name) => scope.ends[far]?.(name) ?? rawSql("null")),
  ];
  const named = columns.map((column, index) => sql`${column} as ${rawSql(`c${index}`)}`);
  const most = limit ?? limits.relatedMax + 1;
  const found = sql`select ${joinSql(named, ", ")} ${sorted.columns} ${from} ${sorted.order} limit ${most}`;
  const values = [...linkColumns, ...endColumns].map((name, index) => {
    const column = sql`${row}.${rawSql(`c${index}`)}`;
    return name === "body" && dialect === "sqlite" ? sql`json(${column})` : column;
  });
  const other = sql`${row}.${rawSql(`c${linkColumns.indexOf(`${far}_key`)}`)}`;
  const nested = alongSql(ground, documents.with, other).map((each) =>
    dialect === "sqlite" ? sql`json(${each})` : each,
  );
  const all = joinSql([...values, ...nested], ", ");
  return dialect === "sqlite"
    ? sql`(select json_group_array(json_array(${all})) from (${found}) as ${row})`
    : sql`(select coalesce(jsonb_agg(jsonb_build_array(${all})), '[]'::jsonb) from (${found}) as ${row})`;
}

type RelatedRow = readonly [string, string, string, number, number | null, number, unknown, ...unknown[]];

/** The documents of each name, from what the statement gave. */
export function readAlong(documents: WithDocuments, rows: readonly unknown[], of: string): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(documents).map(([name, each], index) => [
      name,
      toRelated(name, each, rows[index] as readonly RelatedRow[], of),
    ]),
  );
}

function toRelated(name: string, documents: RelatedDocuments, rows: readonly RelatedRow[], of: string): Entry[] {
  const { relation, way, type, limit } = documents;
  if (limit === null && rows.length > limits.relatedMax) {
    throw invalid(
      `${quote(of)} has more than ${limits.relatedMax} of ${quote(name)}: say how many you want with limit, or ask for them by a query of their own`,
    );
  }
  return rows.map((row) => {
    const [from, to, instance, linkRevision, linkCommit, linkVersion, link, revision, commit, version, value] = row;
    const far = { key: way === "out" ? to : from, from: null, to: null, instance: null };
    const end = { ...far, revision, commit, schemaVersion: version } as Parameters<typeof entryOf>[1];
    const entry = entryOf(type, end, value);
    const at = { key: "", from, to, instance, revision: linkRevision, commit: linkCommit, schemaVersion: linkVersion };
    const nested = row.slice(linkColumns.length + endColumns.length);
    const more = nested.length === 0 ? {} : { related: readAlong(documents.with, nested, far.key) };
    return Object.assign(entry, { relation: entryOf(relation, at, link) }, more);
  });
}
