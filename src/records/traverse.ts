// From one record to those that it is connected with, hop by hop, at one moment. Each record is found once, by a shortest path.
import { checkCount } from "../core/count.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkWord, refuseUnknown } from "../core/suggest.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import { anyOf, rowSet } from "../storage/word.ts";
import { checkDefinition, type AnyEntity, type AnyRelation } from "./define/definition.ts";
import { noRecord, recordKey, type Ends } from "./define/record-key.ts";
import type { TypeRow } from "./define/record-type.ts";
import { readRow } from "./entry.ts";
import { momentOf, type AsOf, type Moment } from "./commit.ts";
import type { RecordReader } from "./record-reader.ts";

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

/** A relation: the number of its type, its key, and what it connects. */
type Edge = Ends & { readonly seq: number; readonly key: string };

type Place = { readonly type: number; readonly key: string };
type Spot = Place & { readonly path: readonly Hop[] };
type Way = Hop["direction"];

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
  const relations = new Map<number, TypeRow>();
  for (const each of [via].flat()) {
    if (checkDefinition(each, "via").kind !== "relation")
      throw invalid(`traverse goes via relations, not "${each.name}"`);
    const row = await reader.typeOf(each.name);
    if (row !== undefined) relations.set(row.seq, row);
  }
  const origin: Spot = { type: (await reader.typeOf(type.name))?.seq ?? 0, key, path: [] };
  const seen = new Set([placeOf(origin)]);
  const reached: Spot[] = [];
  const ways: readonly Way[] = direction === "both" ? ["out", "in"] : [direction];
  for (let frontier = [origin], hop = 1; frontier.length > 0 && hop <= hops && relations.size > 0; hop++) {
    const spots = new Map(frontier.map((spot) => [placeOf(spot), spot]));
    const next: Spot[] = [];
    for (const way of ways) {
      for (const edge of await readEdges(reader, [...relations.keys()], frontier, way, moment)) {
        const { name, from_type_seq: fromType, to_type_seq: toType } = relations.get(edge.seq) as TypeRow;
        const ends = [
          { type: fromType ?? 0, key: edge.from },
          { type: toType ?? 0, key: edge.to },
        ] as const;
        const [near, far] = way === "out" ? ends : [ends[1], ends[0]];
        const before = spots.get(placeOf(near));
        if (before === undefined || seen.has(placeOf(far))) continue;
        seen.add(placeOf(far));
        const { from, to, instance } = edge;
        next.push({ ...far, path: [...before.path, { relation: name, direction: way, from, to, instance }] });
        if (reached.length + next.length <= limits.traversalPathsMax) continue;
        throw invalid(
          `more than ${limits.traversalPathsMax} records are in reach: go fewer hops, or follow fewer relations`,
        );
      }
    }
    reached.push(...next);
    frontier = next;
  }
  const seqs = [...new Set(reached.map((spot) => spot.type))];
  const types = await reader.point<{ seq: number; name: string }>(
    sql`select seq, name from daybook_record_type where seq ${anyOf("integer", seqs)}`,
  );
  const names = new Map(types.map(({ seq, name }) => [seq, name]));
  return reached.map((spot) => ({
    type: names.get(spot.type) ?? "",
    key: spot.key,
    hops: spot.path.length,
    path: spot.path,
  }));
}

/** The relations that begin (or end, for `in`) at one of the spots, by key, and those that the transaction itself made. */
async function readEdges(
  reader: RecordReader,
  seqs: readonly number[],
  frontier: readonly Spot[],
  way: Way,
  moment: Moment,
): Promise<Edge[]> {
  const near = way === "out" ? "from" : "to";
  const arm = (table: string, more: Sql): Sql => sql`
    select r.type_seq as seq, r.key, r.from_key as "from", r.to_key as "to", r.instance_key as "instance"
    from ${rowSet("spot", { type: "integer", key: "text" }, frontier)} cross join daybook_${rawSql(table)} as r
    where r.tenant_id = ${reader.tenant} and ${rawSql(`r.${near}_type_seq = spot.type and r.${near}_key = spot.key`)}
      and r.type_seq ${anyOf("integer", seqs)} ${more}`;
  if (moment !== null) {
    const live = arm("record", sql`and r.from_commit <= ${moment}`);
    const past = arm("record_version", sql`and r.from_commit <= ${moment} and r.to_commit > ${moment}`);
    return inOrder(await reader.heavy<Edge>(sql`${live} union all ${past}`));
  }
  const own = reader.pending().filter(({ row }) => seqs.includes(row.seq));
  // By type and key, because relations of two types between the same two entities have the same key.
  const changed = [...Map.groupBy(own, ({ row }) => row.seq)].map(([seq, changes]) => {
    const keys = changes.map(({ key }) => key);
    return sql` and not (r.type_seq = ${seq} and r.key ${anyOf("text", keys)})`;
  });
  const rows = await reader.heavy<Edge>(arm("record", joinSql(changed)));
  const made = own.flatMap(({ body, ends, row: { seq }, key }) =>
    body === null || ends === null ? [] : [{ ...ends, seq, key }],
  );
  return inOrder([...rows, ...made]);
}

function inOrder(edges: readonly Edge[]): Edge[] {
  return edges.toSorted((one, other) => one.seq - other.seq || (one.key < other.key ? -1 : 1));
}

function placeOf({ type, key }: Place): string {
  return `${type} ${key}`;
}
