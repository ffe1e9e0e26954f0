// From one record to those that it is connected with, hop by hop, at one moment. Each record is found once, by a shortest path.
import { checkCount } from "../core/count.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkWord, refuseUnknown } from "../core/suggest.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import { anyOf, rowSet } from "../storage/word.ts";
import { checkDefinition, type AnyEntity, type AnyRelation } from "./define/definition.ts";
import { recordKey } from "./define/record-key.ts";
import type { TypeRow } from "./define/record-type.ts";
import { readRow } from "./entry.ts";
import { momentOf, type AsOf, type Moment } from "./moment.ts";
import type { RecordReader } from "./record-reader.ts";
import { noRecord } from "./write/write.ts";

export type TraverseOptions = {
  /** Which relations to follow. */
  readonly via: AnyRelation | readonly AnyRelation[];
  /** From `from` to `to` (`out`, the default), the other way (`in`), or both. */
  readonly direction?: "out" | "in" | "both";
  /** How far; default 1. */
  readonly hops?: number;
  readonly asOf?: AsOf;
};

/** One step of a path, in the direction in which it was taken. */
export type Hop = {
  readonly relation: string;
  readonly direction: "out" | "in";
  readonly from: string;
  readonly to: string;
  readonly instance: string;
};

export type Reached = {
  readonly type: string;
  readonly key: string;
  readonly hops: number;
  readonly path: readonly Hop[];
};

type Edge = {
  near_type: number;
  near_key: string;
  far_type: number;
  far_key: string;
  type_seq: number;
  from_key: string;
  to_key: string;
  instance_key: string;
};

type Spot = { readonly type: number; readonly key: string; readonly path: readonly Hop[] };

export async function traverse(
  reader: RecordReader,
  type: AnyEntity,
  key: string,
  options: TraverseOptions,
): Promise<Reached[]> {
  refuseUnknown(options, ["via", "direction", "hops", "asOf"], "traverse");
  const { direction = "out", via } = options;
  checkWord(direction, ["out", "in", "both"], "direction");
  const hops = checkCount(options.hops ?? 1, "hops", 1, limits.traversalHopsMax);
  const moment = await momentOf(reader, options.asOf);
  const start = recordKey(type, key);
  if ((await readRow(reader, type.name, start, moment)) === undefined) throw noRecord(type.name, start);
  const relations: TypeRow[] = [];
  for (const each of [via].flat()) {
    if (checkDefinition(each, "via").kind !== "relation")
      throw invalid(`traverse goes via relations, not "${each.name}"`);
    const row = await reader.typeOf(each.name);
    if (row !== undefined) relations.push(row);
  }
  const names = new Map(relations.map((row) => [row.seq, row.name]));
  const origin: Spot = { type: (await reader.typeOf(type.name))?.seq ?? 0, key, path: [] };
  const seen = new Set([placeOf(origin)]);
  const reached: Spot[] = [];
  for (let frontier = [origin], hop = 1; frontier.length > 0 && hop <= hops && relations.length > 0; hop++) {
    const next: Spot[] = [];
    const ways = direction === "both" ? (["out", "in"] as const) : [direction];
    for (const way of ways) {
      const near = new Map(frontier.map((spot) => [placeOf(spot), spot]));
      for (const edge of await readEdges(reader, relations, frontier, way, moment)) {
        const spot = { type: edge.far_type, key: edge.far_key };
        if (seen.has(placeOf(spot))) continue;
        seen.add(placeOf(spot));
        const before = near.get(placeOf({ type: edge.near_type, key: edge.near_key }))?.path ?? [];
        const { from_key: from, to_key: to, instance_key: instance } = edge;
        next.push({
          ...spot,
          path: [...before, { relation: names.get(edge.type_seq) ?? "", direction: way, from, to, instance }],
        });
        if (reached.length + next.length > limits.traversalPathsMax) throw tooMany();
      }
    }
    reached.push(...next);
    frontier = next;
  }
  const types = await typeNames(reader, new Set(reached.map((spot) => spot.type)));
  return reached.map(({ type: seq, key: found, path }) => ({
    type: types.get(seq) ?? "",
    key: found,
    hops: path.length,
    path,
  }));
}

/** The relations that begin (or end, for `in`) at one of the spots, by key. */
async function readEdges(
  reader: RecordReader,
  relations: readonly TypeRow[],
  frontier: readonly Spot[],
  way: "out" | "in",
  moment: Moment,
): Promise<Edge[]> {
  const [near, far] = way === "out" ? (["from", "to"] as const) : (["to", "from"] as const);
  const spots = frontier.map(({ type, key }) => ({ type, key }));
  const seqs = relations.map((row) => row.seq);
  const arm = (table: string, more: Sql): Sql => sql`
    select spot.type as near_type, spot.key as near_key, ${rawSql(`r.${far}_type_seq as far_type, r.${far}_key as far_key`)},
      r.type_seq, r.key, r.from_key, r.to_key, r.instance_key
    from ${rowSet("spot", { type: "integer", key: "text" }, spots)} cross join daybook_${rawSql(table)} as r
    where r.tenant_id = ${reader.tenant} and ${rawSql(`r.${near}_type_seq = spot.type and r.${near}_key = spot.key`)}
      and r.type_seq ${anyOf("integer", seqs)} ${more}`;
  const own =
    moment === null ? reader.pending().filter(({ row, ends }) => ends !== null && seqs.includes(row.seq)) : [];
  // By type and key, because relations of two types between the same two entities have the same key.
  const changed = [...Map.groupBy(own, ({ row }) => row.seq)].map(([seq, changes]) => {
    const keys = changes.map(({ key }) => key);
    return sql` and not (r.type_seq = ${seq} and r.key ${anyOf("text", keys)})`;
  });
  const arms =
    moment === null
      ? [arm("record", joinSql(changed))]
      : [
          arm("record", sql`and r.from_commit <= ${moment}`),
          rawSql("union all"),
          arm("record_version", sql`and r.from_commit <= ${moment} and r.to_commit > ${moment}`),
        ];
  const rows = await reader.heavy<Edge & { key: string }>(
    sql`select * from (${joinSql(arms)}) as edge order by type_seq, key`,
  );
  const made = own.flatMap(({ body, ends, row, key }) => {
    if (body === null || ends === null) return [];
    const [fromType, toType] = [row.from_type_seq ?? 0, row.to_type_seq ?? 0];
    const [nearType, farType] = way === "out" ? [fromType, toType] : [toType, fromType];
    const edge = {
      near_type: nearType,
      near_key: ends[near],
      far_type: farType,
      far_key: ends[far],
      type_seq: row.seq,
    };
    if (!frontier.some((spot) => spot.type === nearType && spot.key === ends[near])) return [];
    return [{ ...edge, key, from_key: ends.from, to_key: ends.to, instance_key: ends.instance }];
  });
  return [...rows, ...made].sort((one, other) => one.type_seq - other.type_seq || (one.key < other.key ? -1 : 1));
}

async function typeNames(reader: RecordReader, seqs: ReadonlySet<number>): Promise<Map<number, string>> {
  const rows = await reader.point<{ seq: number; name: string }>(
    sql`select seq, name from daybook_record_type where seq ${anyOf("integer", [...seqs])}`,
  );
  return new Map(rows.map(({ seq, name }) => [seq, name]));
}

function placeOf({ type, key }: { readonly type: number; readonly key: string }): string {
  return `${type} ${key}`;
}

function tooMany(): Error {
  return invalid(
    `more than ${limits.traversalPathsMax} records are in reach: go fewer hops, or follow fewer relations`,
  );
}
