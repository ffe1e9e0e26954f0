// What caused a thing, and what it caused: the tree from the first cause on, of which the asked thing is a part. Every row that was made
// while a run was executing carries that run's id, so each step is a seek: up from a row to the run, down from the run to its rows.
import { notFound } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf, indexedBy } from "../storage/word.ts";
import {
  callsBy,
  callsOf,
  commitsBy,
  eventsBy,
  jobsBy,
  nodeOfRun,
  ofJob,
  toCommit,
  toEvent,
  toJob,
} from "./cause-node.ts";
import type { CauseEdge, CauseKind, CauseNode, Known, Whose } from "./cause-node.ts";

export type Causes = {
  /** The keys of the node that was asked for, and of its first cause. */
  readonly asked: string;
  readonly root: string;
  /** The causes of the asked node first, from the root down, then what it caused, the nearest first, then what else came of these. */
  readonly nodes: readonly CauseNode[];
  readonly edges: readonly CauseEdge[];
  /** There is more than this. */
  readonly cut: boolean;
};

export async function readCauses(store: Store, tenant: string, id: string): Promise<Causes> {
  const of: Whose = { store, tenant };
  const asked = typeof id === "string" ? await findAsked(of, id) : undefined;
  if (asked === undefined) throw notFound(`there is no job, run, event, call or commit ${quote(id)}`, { id });
  const edges: CauseEdge[] = [];
  const path = [asked];
  for (let top = await above(of, asked, edges); top !== undefined; top = await above(of, top, edges)) {
    if (path.length >= limits.causesAboveMax || path.some(({ key }) => key === top?.key)) break;
    path.unshift(top);
  }
  const nodes = new Map(path.map((node) => [node.key, node]));
  // What the asked one caused comes before what else came of its causes.
  const cut =
    (await growFrom(of, [asked], { nodes, edges })) || (await growFrom(of, path.slice(0, -1), { nodes, edges }));
  return {
    asked: asked.key,
    root: path[0]?.key ?? asked.key,
    nodes: [...nodes.values()].map(({ seq: _seq, runIds: _runs, up: _up, ...node }) => node),
    edges: edges.filter(({ from, to }) => nodes.has(from) && nodes.has(to)),
    cut,
  };
}

async function above(of: Whose, node: Known, edges: CauseEdge[]): Promise<Known | undefined> {
  for (const { kind, find } of node.up) {
    const found = await find(of);
    if (found === undefined) continue;
    edges.push({ from: found.key, to: node.key, kind });
    return found;
  }
  return undefined;
}

type Grown = { readonly nodes: Map<string, Known>; readonly edges: CauseEdge[] };

/** Adds what these caused, level by level, until there is room for no more; says whether there would be. */
async function growFrom(of: Whose, from: readonly Known[], { nodes, edges }: Grown): Promise<boolean> {
  // A schedule has fired for years: of its fires only the one that led here is shown.
  let level = from.filter(({ kind }) => kind !== "schedule");
  while (level.length > 0) {
    const room = limits.causesMax - nodes.size;
    const found = await below(of, level, room + 1 + from.length);
    const fresh = found.filter(({ node }) => !nodes.has(node.key));
    for (const { node, edge } of fresh.slice(0, Math.max(0, room))) {
      nodes.set(node.key, node);
      edges.push(edge);
    }
    if (fresh.length > room) return true;
    level = fresh.map(({ node }) => node);
  }
  return false;
}

type Below = { readonly node: Known; readonly edge: CauseEdge };

async function below(of: Whose, level: readonly Known[], limit: number): Promise<Below[]> {
  const byRun = new Map(level.flatMap((node) => node.runIds.map((id) => [id, node.key] as const)));
  const runs = [...byRun.keys()];
  const seqs = (kinds: readonly CauseKind[]): Map<number, string> =>
    new Map(level.filter(({ kind }) => kinds.includes(kind)).map(({ seq, key }) => [seq, key]));
  const [jobs, events] = [seqs(["job", "delivery"]), seqs(["event"])];
  const index = (name: string): Sql => sql`${indexedBy(name)}`;
  const ofRun = sql`cause_run_id ${anyOf("text", runs)} and cause_run_id is not null`;
  const ofJob = sql`retry_of ${anyOf("integer", [...jobs.keys()])} and retry_of is not null`;
  const ofEvent = sql`kind_seq ${anyOf("integer", [...events.keys()])} and kind = 'delivery' and retry_of is null`;
  const first = sql`${ofRun} and retry_of is null and kind is distinct from 'delivery'`;
  const [made, published, committed, retried, delivered] = await Promise.all([
    runs.length === 0 ? [] : jobsBy(of, first, limit, index("jobs_caused")),
    runs.length === 0 ? [] : eventsBy(of, ofRun, limit, index("events_caused")),
    runs.length === 0
      ? []
      : commitsBy(of, sql`run_id ${anyOf("text", runs)} and run_id is not null`, limit, index("commits_caused")),
    jobs.size === 0 ? [] : jobsBy(of, ofJob, limit, index("jobs_one_retry")),
    events.size === 0 ? [] : jobsBy(of, ofEvent, limit, index("deliveries_one_chain")),
  ]);
  const calls = await callsOf(of, made);
  const found: Below[] = [
    ...made.map((row) =>
      edgeTo(byRun.get(row.cause_run_id ?? ""), calls.get(row.kind_seq ?? 0) ?? toJob(row), "caused"),
    ),
    ...retried.map((row) => edgeTo(jobs.get(row.retry_of ?? 0), toJob(row), "retried")),
    ...delivered.map((row) => edgeTo(events.get(row.kind_seq ?? 0), toJob(row), "delivered")),
    ...published.map((row) => edgeTo(byRun.get(row.cause_run_id ?? ""), toEvent(row), "caused")),
    ...committed.map((row) => edgeTo(byRun.get(row.run_id ?? ""), toCommit(row), "caused")),
  ];
  return found.toSorted((one, other) => one.node.at - other.node.at);
}

function edgeTo(from: string | undefined, node: Known, kind: CauseEdge["kind"]): Below {
  return { node, edge: { from: from ?? "", to: node.key, kind } };
}

async function findAsked(of: Whose, id: string): Promise<Known | undefined> {
  const [job] = await jobsBy(of, sql`id = ${id}`, 1);
  if (job !== undefined) return ofJob(of, job);
  const run = await nodeOfRun(of, id);
  if (run !== undefined) return run;
  const [event] = await eventsBy(of, sql`id = ${id}`, 1);
  if (event !== undefined) return toEvent(event);
  const [call] = await callsBy(of, sql`id = ${id}`);
  if (call !== undefined) return call;
  const [commit] = /^\d{1,12}$/.test(id) ? await commitsBy(of, sql`id = ${Number(id)}`, 1) : [];
  return commit === undefined ? undefined : toCommit(commit);
}
